//! Who holds the virtual address: the decision alone, without sockets, clock or randomness.
//!
//! In the manner of VRRP version 3 (RFC 9568), with these differences: every control plane
//! advertises, not only the holder, so that all know each other's health; advertisements go to
//! listed peers instead of a multicast group; a holder with an ailing API server hands over by
//! name instead of being preempted, so that a change of mind never makes two holders; and, because
//! a network can be cut in parts, only one that is in contact with a majority holds the address.
//!
//! ```text
//!              in contact with a majority, and no claim known for DOWN
//!              (+ SKEW for each that would do better), or named as successor
//!           +----------------------------------------------------+
//!           |                                                    v
//!        Backup                                               Holder
//!           ^                                                    |
//!           +----------------------------------------------------+
//!              learnt of a better claim; lost contact with the majority;
//!              API server down while a peer's is fit
//! ```
//!
//! Times are those of this node alone (never another node's clock) and stand still while this node
//! does: silence counts only while we listen.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::time::Duration;

use model::node_spec::Health;

use super::advert::{Advert, Claim, Standing};
use super::others::Others;

pub type Time = Duration;

/// Between two advertisements.
pub const ADVERTISE: Duration = Duration::from_millis(150);
/// One that was not heard for this long is gone: four advertisements, so that three may be lost or
/// late (a busy machine), and still well below the second that a failover may take.
pub const DOWN: Duration = Duration::from_millis(600);
/// What each better candidate costs a worse one, so that usually only one takes the address.
const SKEW: Duration = Duration::from_millis(100);
/// How long an API server must have answered before the address may move to it. One that comes and
/// goes (a slow disk, a crash loop) does not drag the address along.
const SETTLE: Duration = Duration::from_secs(2);
/// How long the holder's API server must have been down before it hands over. New connections go to
/// others at once: there is no hurry to move the address as well.
const AILING: Duration = Duration::from_millis(500);
/// One that stood still for this long is on a busy machine: it listens before it acts on silence.
const STALL: Duration = Duration::from_millis(300);
/// An API server is ready only while etcd has a majority. So long does that prove one for this node;
/// health checks notice a lost one in less than half of it.
const PROVEN: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    Tick,
    Heard(Ipv4Addr, Advert),
    /// Something from a peer that is no advertisement with our key: it lives, more is not known.
    Noise(Ipv4Addr),
    Health(Health),
    /// The control planes are these now.
    Peers(BTreeSet<Ipv4Addr>),
    /// The node goes down, or is no control plane any more.
    Leave,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Take the address and tell the network.
    Take,
    /// Give the address up, before anything that comes after this in the list.
    Drop(Why),
    /// Tell the network again: another may have told it otherwise.
    Announce,
    /// To all peers.
    Send(Advert),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// Another has it, or is to have it: what goes through this node may go on.
    Replaced,
    /// Cut off from the majority, or going down: nothing that goes through this node has a future.
    Lost,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Backup,
    Holder,
    Left,
}

#[derive(Debug, Clone)]
pub struct State {
    me: Ipv4Addr,
    others: Others,
    pub role: Role,
    /// Of the election that this node won, while it holds.
    term: u64,
    /// The highest term seen anywhere.
    seen: u64,
    pub health: Health,
    alive_since: Option<Time>,
    down_since: Option<Time>,
    /// When the API server was last ready.
    ready: Option<Time>,
    /// It held the address as the only control plane, and the others have not come yet.
    first: bool,
    /// When a missing holder is to be replaced.
    due: Time,
    /// What the time of [`Others`] was last read from.
    clock: Time,
    /// Holds, but has slept so long that another may have taken over: what waits to be heard tells.
    doubt: bool,
    advertised: Option<Time>,
    /// Whose claim was last passed on.
    told: Option<Ipv4Addr>,
    /// Something that peers must know at once.
    news: bool,
    /// Who held the address before this node.
    followed: Option<Ipv4Addr>,
}

/// `holding`: the address is on this node already (it was its only control plane so far).
pub fn start(me: Ipv4Addr, peers: &BTreeSet<Ipv4Addr>, holding: bool, clock: Time) -> State {
    State {
        me,
        others: Others::new(me, peers),
        role: if holding { Role::Holder } else { Role::Backup },
        term: 0,
        seen: 0,
        health: Health::Down,
        alive_since: None,
        down_since: None,
        ready: None,
        first: holding,
        due: DOWN,
        clock,
        doubt: false,
        advertised: None,
        told: None,
        news: true,
        followed: None,
    }
}

pub fn decide(mut state: State, event: Event, clock: Time) -> (State, Vec<Action>) {
    let mut actions = Vec::new();
    state.wake(clock);
    // One that was late to listen may have more waiting, the holder's word among it: silence is only
    // what is left when all was heard.
    let silence = !matches!(event, Event::Heard(..) | Event::Noise(_));
    match event {
        Event::Tick => {}
        Event::Heard(from, advert) => state.heard(from, advert, &mut actions),
        Event::Noise(from) => state.others.noise(from),
        Event::Health(health) => state.set_health(health),
        Event::Peers(peers) => state.set_peers(&peers),
        Event::Leave => state.leave(&mut actions),
    }
    if silence && std::mem::take(&mut state.doubt) && state.is_holder() {
        state.news = true;
        actions.push(Action::Announce);
    }
    if !state.doubt {
        if silence {
            state.judge(&mut actions);
        }
        state.advertise(&mut actions);
    }
    (state, actions)
}

impl State {
    pub fn is_holder(&self) -> bool {
        self.role == Role::Holder
    }

    /// Holds the address, as far as it knows; one that doubts does nothing about it.
    pub fn is_sure(&self) -> bool {
        !self.doubt
    }

    pub fn term(&self) -> u64 {
        if self.is_holder() { self.term } else { self.seen }
    }

    fn now(&self) -> Time {
        self.others.now()
    }

    pub fn alone(&self) -> bool {
        self.others.is_empty()
    }

    pub fn peers(&self) -> impl Iterator<Item = Ipv4Addr> {
        self.others.ips()
    }

    /// Who holds the address, as far as this node knows.
    pub fn holder(&self) -> Option<Ipv4Addr> {
        if self.is_holder() { Some(self.me) } else { self.others.claim() }
    }

    /// Of a holder: who held it before and is still there, with connections that go through it.
    pub fn former(&self) -> Option<Ipv4Addr> {
        let former = self.followed.filter(|_| self.is_holder())?;
        self.others.fresh().find(|(ip, a)| *ip == former && a.standing != Standing::Leaving).map(|(ip, _)| ip)
    }

    /// Where connections to the virtual address go: the ready API servers, or if there is none (a
    /// cluster being born) those that answer. Each node judges its own server and advertises the
    /// verdict, so a server is also left out when its node is silent.
    pub fn backends(&self) -> BTreeSet<Ipv4Addr> {
        let mut all: Vec<(Ipv4Addr, Health)> = self
            .others
            .fresh()
            .filter(|(_, a)| a.standing != Standing::Leaving)
            .map(|(ip, a)| (ip, a.health))
            .collect();
        if self.role != Role::Left {
            all.push((self.me, self.health));
        }
        let best = all.iter().map(|(_, h)| *h).max().unwrap_or(Health::Down);
        if best == Health::Down {
            return BTreeSet::new();
        }
        all.into_iter().filter(|(_, h)| *h == best).map(|(ip, _)| ip).collect()
    }

    /// Nothing can be expected of this node's API server: what waits for it waits in vain.
    pub fn is_lost(&self, ip: Ipv4Addr) -> bool {
        if ip == self.me {
            return self.health == Health::Down;
        }
        !self.others.fresh().any(|(peer, a)| peer == ip && a.health > Health::Down)
    }

    /// Is this node in contact, both ways, with a majority of the control planes?
    pub fn has_majority(&self) -> bool {
        let (contact, size) = (self.others.contact(), self.others.size());
        let proven = self.ready.is_some_and(|at| self.others.since(at) < PROVEN);
        // With half of them a holder stays: the other half is no majority either.
        contact * 2 > size
            || proven && contact * 2 > self.others.counted()
            || self.is_holder() && (self.first || proven && contact * 2 == size)
    }

    fn standing(&self) -> Standing {
        match (self.role, self.alive_since) {
            (Role::Left, _) => Standing::Leaving,
            (_, None) => Standing::Down,
            (_, Some(since)) if self.others.since(since) < SETTLE => Standing::New,
            _ => Standing::Fit,
        }
    }

    fn wake(&mut self, clock: Time) {
        let slept = clock.saturating_sub(self.clock);
        self.clock = clock;
        self.others.pass(slept.min(STALL));
        if self.health == Health::Ready {
            self.ready = Some(self.now());
        }
        if slept > STALL {
            self.due = self.due.max(self.now() + DOWN);
        }
        if slept > DOWN {
            self.doubt = self.is_holder() && !self.alone();
        }
    }

    fn heard(&mut self, from: Ipv4Addr, advert: Advert, actions: &mut Vec<Action>) {
        let (claim, successor, term) = (advert.claim, advert.successor, advert.term);
        let Some(word) = self.others.hear(from, advert) else { return };
        // It waits to be told that it is heard.
        self.news |= word.comes_back;
        self.seen = self.seen.max(term);
        self.first &= self.others.contact() * 2 <= self.others.size();
        if let Some(claim) = claim {
            self.learn(from, claim, actions);
        }
        let vacant = self.role == Role::Backup && self.others.claim().is_none();
        if vacant && successor == Some(self.me) && self.has_majority() {
            self.take(actions);
        } else if vacant && word.resigns {
            // The one it named, if it named one, gets the time of an advertisement to take over.
            self.due = self.now() + ADVERTISE;
        }
    }

    fn learn(&mut self, from: Ipv4Addr, claim: Claim, actions: &mut Vec<Action>) {
        let Some(at) = self.others.learn(from, claim) else { return };
        self.seen = self.seen.max(claim.term);
        self.due = self.due.max(at + DOWN);
        if !self.is_holder() {
            self.followed = self.others.claim();
        } else if (claim.term, Reverse(claim.holder)) > (self.term, Reverse(self.me)) {
            self.followed = Some(claim.holder);
            self.step_down(Why::Replaced, actions);
        } else {
            self.news = true;
            actions.push(Action::Announce);
        }
    }

    fn set_health(&mut self, health: Health) {
        self.news |= self.health != health;
        if health == Health::Ready && self.health != Health::Ready {
            // With that this node may have a majority that it had not: it listens first.
            self.due = self.due.max(self.now() + DOWN);
        }
        self.health = health;
        (self.alive_since, self.down_since) = match health {
            Health::Down => (None, self.down_since.or(Some(self.now()))),
            _ => (self.alive_since.or(Some(self.now())), None),
        };
    }

    /// No role changes by that alone.
    fn set_peers(&mut self, peers: &BTreeSet<Ipv4Addr>) {
        self.first |= self.alone() && self.is_holder();
        self.others.set(peers);
        self.news = true;
    }

    fn leave(&mut self, actions: &mut Vec<Action>) {
        let successor = self.is_holder().then(|| self.others.best(Standing::Down)).flatten();
        if self.is_holder() {
            self.step_down(Why::Lost, actions);
        }
        self.role = Role::Left;
        self.say(successor, actions);
    }

    /// What follows from the state as it is now, when nothing waits to be heard.
    fn judge(&mut self, actions: &mut Vec<Action>) {
        match self.role {
            Role::Left => {}
            Role::Backup if self.alone() || self.may_take() => self.take(actions),
            Role::Backup => {}
            Role::Holder if self.alone() => {}
            Role::Holder if !self.has_majority() => {
                self.due = self.now() + DOWN;
                self.step_down(Why::Lost, actions);
            }
            Role::Holder if self.down_since.is_some_and(|at| self.others.since(at) >= AILING) => {
                if let Some(successor) = self.others.best(Standing::Fit) {
                    self.due = self.now() + DOWN;
                    self.step_down(Why::Replaced, actions);
                    self.say(Some(successor), actions);
                }
            }
            Role::Holder => {}
        }
    }

    fn may_take(&self) -> bool {
        self.now() >= self.turn() && self.others.claim().is_none() && self.has_majority()
    }

    /// When this backup would take the address: those who would do better go first.
    fn turn(&self) -> Time {
        let mine = (self.standing(), Reverse(self.me));
        let rivals = self.others.fresh().filter(|(ip, a)| a.majority && !a.holds(*ip));
        let better = rivals.filter(|(ip, a)| (a.standing, Reverse(*ip)) > mine).count();
        self.due + SKEW * u32::try_from(better).unwrap_or(u32::MAX)
    }

    /// How long nothing has to be done, if nothing happens.
    pub fn pause(&self) -> Duration {
        let advertise = self.advertised.map_or(self.now(), |at| at + ADVERTISE);
        let next = match self.role {
            Role::Backup if self.may_take() => self.now(),
            // What is due but not ours to take is nothing to wait for.
            Role::Backup => {
                let coming = [self.due, self.turn()].into_iter().filter(|at| *at > self.now());
                coming.fold(advertise, Time::min)
            }
            _ => advertise,
        };
        next.saturating_sub(self.now())
    }

    fn take(&mut self, actions: &mut Vec<Action>) {
        self.seen = self.seen.saturating_add(1);
        self.term = self.seen;
        self.role = Role::Holder;
        self.news = true;
        actions.push(Action::Take);
    }

    fn step_down(&mut self, why: Why, actions: &mut Vec<Action>) {
        self.role = Role::Backup;
        (self.doubt, self.first) = (false, false);
        self.news = true;
        actions.push(Action::Drop(why));
    }

    fn advertise(&mut self, actions: &mut Vec<Action>) {
        if self.alone() {
            return;
        }
        self.news |= self.holder() != self.told;
        if self.news || self.advertised.is_none_or(|at| self.others.since(at) >= ADVERTISE) {
            self.say(None, actions);
        }
    }

    fn say(&mut self, successor: Option<Ipv4Addr>, actions: &mut Vec<Action>) {
        self.news = false;
        self.advertised = Some(self.now());
        self.told = self.holder();
        let own = Claim { holder: self.me, term: self.term, age: Duration::ZERO, hops: 0 };
        actions.push(Action::Send(Advert {
            term: self.term(),
            standing: self.standing(),
            health: if self.role == Role::Left { Health::Down } else { self.health },
            claim: if self.is_holder() { Some(own) } else { self.others.pass_on() },
            successor,
            majority: self.role != Role::Left && self.has_majority(),
            hears: self.others.fresh().map(|(ip, _)| ip).collect(),
        }));
    }
}

#[cfg(test)]
#[path = "election_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "simulation.rs"]
mod simulation;

#[cfg(test)]
#[path = "partitions.rs"]
mod partitions;
