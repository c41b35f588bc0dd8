//! Who holds the virtual address: the decision alone, without sockets, clock or randomness.
//!
//! In the manner of VRRP version 3 (RFC 9568), with these differences: every control plane
//! advertises, not only the holder, so that all know each other's health; advertisements go to
//! listed peers instead of a multicast group; and a holder with an ailing API server hands over by
//! name instead of being preempted, so that a change of mind never makes two holders.
//!
//! ```text
//!              no holder heard for DOWN (+ SKEW for everyone who would do better)
//!              or named as successor
//!           +----------------------------------------------------+
//!           |                                                    v
//!        Backup                                               Holder
//!           ^                                                    |
//!           +----------------------------------------------------+
//!              heard a better claim; cut from the network;
//!              API server down while a peer's is fit
//! ```
//!
//! Times are those of this node alone (never another node's clock), since the start of the agent.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::time::Duration;

use model::node_spec::Health;

use super::advert::{Advert, Standing};

pub type Time = Duration;

/// Between two advertisements.
pub const ADVERTISE: Duration = Duration::from_millis(150);
/// Whoever was not heard for this long is gone: four advertisements, so that three may be lost or
/// late (a busy machine), and still well below the second that a failover may take.
pub const DOWN: Duration = Duration::from_millis(600);
/// What each better candidate costs a worse one, so that usually only one takes the address.
const SKEW: Duration = Duration::from_millis(100);
/// How long an API server must have answered before the address may move to it. One that comes and
/// goes (a slow disk, a crash loop) does not drag the address along.
const SETTLE: Duration = Duration::from_secs(2);
/// Who stood still for this long is on a busy machine, where the holder may have stood still as well.
const STALL: Duration = Duration::from_millis(300);
/// Nobody heard for this long: time to ask whether the network is there at all.
const SILENCE: Duration = Duration::from_millis(225);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    Tick,
    Heard(Ipv4Addr, Advert),
    Health(Health),
    /// The gateway answered: whatever else is silent, our cable is plugged in.
    Gateway,
    /// The node goes down, or is no control plane any more.
    Leave,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Take the address and tell the network.
    Take,
    /// Give the address up, before anything that comes after this in the list.
    Drop,
    /// Tell the network again: somebody else may have told it otherwise.
    Announce,
    /// To all peers.
    Send(Advert),
    AskGateway,
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
    /// The other control planes, and what was last heard of them.
    peers: BTreeMap<Ipv4Addr, Option<Heard>>,
    pub role: Role,
    /// Of the election that this node won, while it holds.
    term: u64,
    /// The highest term seen anywhere.
    seen: u64,
    pub health: Health,
    alive_since: Option<Time>,
    /// When a missing holder is to be replaced.
    due: Time,
    gateway: Option<Time>,
    last_step: Time,
    /// Holds, but has slept so long that somebody may have taken over: what waits to be heard tells.
    doubt: bool,
    advertised: Option<Time>,
    /// Something that peers must know at once.
    news: bool,
}

#[derive(Debug, Clone, Copy)]
struct Heard {
    at: Time,
    advert: Advert,
}

/// `holding`: the address is on this node already (it was its only control plane so far).
pub fn start(me: Ipv4Addr, peers: &BTreeSet<Ipv4Addr>, holding: bool, now: Time) -> State {
    State {
        me,
        peers: others(me, peers).map(|ip| (ip, None)).collect(),
        role: if holding { Role::Holder } else { Role::Backup },
        term: 0,
        seen: 0,
        health: Health::Down,
        alive_since: None,
        due: now + DOWN,
        gateway: None,
        last_step: now,
        doubt: false,
        advertised: None,
        news: true,
    }
}

/// The control planes are these now. Nobody's role changes by that alone.
pub fn set_peers(mut state: State, peers: &BTreeSet<Ipv4Addr>) -> State {
    state.peers = others(state.me, peers).map(|ip| (ip, state.peers.get(&ip).copied().flatten())).collect();
    state
}

fn others(me: Ipv4Addr, all: &BTreeSet<Ipv4Addr>) -> impl Iterator<Item = Ipv4Addr> {
    all.iter().copied().filter(move |ip| *ip != me)
}

pub fn decide(mut state: State, event: Event, now: Time) -> (State, Vec<Action>) {
    let mut actions = Vec::new();
    state.wake(now);
    if matches!(event, Event::Gateway | Event::Heard(..)) && !state.connected(now) {
        // Plugged in again: somebody holds the address by now, and will be heard soon.
        state.due = state.due.max(now + DOWN);
    }
    match event {
        Event::Tick => {}
        Event::Heard(from, advert) => state.heard(from, advert, now, &mut actions),
        Event::Health(health) => state.set_health(health, now),
        Event::Gateway => state.gateway = Some(now),
        Event::Leave => state.leave(now, &mut actions),
    }
    // Who was late to listen may have more waiting, the holder's word among it: silence is only
    // what is left when all was heard.
    let silence = !matches!(event, Event::Heard(..));
    if silence && std::mem::take(&mut state.doubt) && state.is_holder() {
        state.news = true;
        actions.push(Action::Announce);
    }
    if !state.doubt {
        state.judge(now, silence, &mut actions);
        state.advertise(now, &mut actions);
    }
    (state, actions)
}

impl State {
    pub fn is_holder(&self) -> bool {
        self.role == Role::Holder
    }

    pub fn term(&self) -> u64 {
        if self.is_holder() { self.term } else { self.seen }
    }

    pub fn alone(&self) -> bool {
        self.peers.is_empty()
    }

    pub fn peers(&self) -> impl Iterator<Item = Ipv4Addr> {
        self.peers.keys().copied()
    }

    /// Who holds the address, as far as this node knows.
    pub fn holder(&self, now: Time) -> Option<Ipv4Addr> {
        if self.is_holder() {
            return Some(self.me);
        }
        let holders = self.fresh(now).filter(|(_, a)| a.holder);
        holders.max_by_key(|(ip, a)| (a.term, a.standing, Reverse(*ip))).map(|(ip, _)| ip)
    }

    /// Where connections to the virtual address go: the ready API servers, or if there is none (a
    /// cluster being born) those that answer. Each node judges its own server and advertises the
    /// verdict, so a server is also left out when its node is silent.
    pub fn backends(&self, now: Time) -> BTreeSet<Ipv4Addr> {
        let mut all: Vec<(Ipv4Addr, Health)> = self
            .fresh(now)
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
    pub fn is_lost(&self, ip: Ipv4Addr, now: Time) -> bool {
        if ip == self.me {
            return self.health == Health::Down;
        }
        !self.fresh(now).any(|(peer, a)| peer == ip && a.health > Health::Down)
    }

    fn fresh(&self, now: Time) -> impl Iterator<Item = (Ipv4Addr, Advert)> {
        self.peers
            .iter()
            .filter_map(|(ip, heard)| heard.map(|h| (*ip, h)))
            .filter(move |(_, h)| now.saturating_sub(h.at) < DOWN)
            .map(|(ip, h)| (ip, h.advert))
    }

    fn standing(&self, now: Time) -> Standing {
        match (self.role, self.alive_since) {
            (Role::Left, _) => Standing::Leaving,
            (_, None) => Standing::Down,
            (_, Some(since)) if now.saturating_sub(since) < SETTLE => Standing::New,
            _ => Standing::Fit,
        }
    }

    /// Hears a peer or the gateway. A gateway that never answered anybody proves nothing by silence.
    fn connected(&self, now: Time) -> bool {
        self.fresh(now).next().is_some() || self.gateway.is_none_or(|at| now.saturating_sub(at) <= DOWN)
    }

    /// Whoever slept longer than the others wait for him may have been replaced meanwhile: he listens
    /// first. (On a busy machine all may have slept, and then nothing has happened.)
    fn wake(&mut self, now: Time) {
        let before = self.last_step;
        self.last_step = now;
        let slept = now.saturating_sub(before);
        if slept > STALL {
            // Time for the word that the holder owes.
            self.due = self.due.max(now + ADVERTISE);
            // And what was not heard meanwhile proves nothing about the cable.
            self.gateway = self.gateway.map(|_| now);
        }
        if slept > DOWN {
            self.due = now + DOWN;
            self.doubt = self.is_holder() && !self.alone();
        }
    }

    /// Holds the address, as far as it knows; one that doubts does nothing about it.
    pub fn is_sure(&self) -> bool {
        !self.doubt
    }

    fn heard(&mut self, from: Ipv4Addr, advert: Advert, now: Time, actions: &mut Vec<Action>) {
        let Some(slot) = self.peers.get_mut(&from) else { return };
        let resigned = slot.is_some_and(|before| before.advert.holder) && !advert.holder;
        *slot = Some(Heard { at: now, advert });
        self.seen = self.seen.max(advert.term);
        if advert.holder {
            self.due = now + DOWN;
            if self.is_holder() {
                let mine = (self.term, self.standing(now), Reverse(self.me));
                if (advert.term, advert.standing, Reverse(from)) > mine {
                    self.step_down(actions);
                } else {
                    self.news = true;
                    actions.push(Action::Announce);
                }
            }
        } else if self.role == Role::Backup && advert.successor == Some(self.me) {
            self.take(actions);
        } else if resigned && !self.fresh(now).any(|(_, a)| a.holder) {
            // The one it named, if it named one, gets the time of an advertisement to take over.
            self.due = now + ADVERTISE;
        }
    }

    fn set_health(&mut self, health: Health, now: Time) {
        self.news |= self.health != health;
        self.health = health;
        self.alive_since = match health {
            Health::Down => None,
            _ => self.alive_since.or(Some(now)),
        };
    }

    fn leave(&mut self, now: Time, actions: &mut Vec<Action>) {
        let successor = self.is_holder().then(|| self.best(now, Standing::Down)).flatten();
        if self.is_holder() {
            self.step_down(actions);
        }
        self.role = Role::Left;
        self.say(now, successor, actions);
    }

    /// What follows from the state as it is now. `silence`: nothing waits to be heard.
    fn judge(&mut self, now: Time, silence: bool, actions: &mut Vec<Action>) {
        match self.role {
            Role::Left => {}
            Role::Backup if self.alone() => self.take(actions),
            Role::Backup => {
                if silence && now >= self.turn(now) && self.connected(now) {
                    self.take(actions);
                }
            }
            Role::Holder if self.alone() => {}
            Role::Holder if !self.connected(now) => {
                self.due = now + DOWN;
                self.step_down(actions);
            }
            Role::Holder if self.standing(now) == Standing::Down => {
                if let Some(successor) = self.best(now, Standing::Fit) {
                    self.due = now + DOWN;
                    self.step_down(actions);
                    self.say(now, Some(successor), actions);
                }
            }
            Role::Holder => {}
        }
    }

    /// When this backup would take the address: those who would do better go first.
    fn turn(&self, now: Time) -> Time {
        let mine = (self.standing(now), Reverse(self.me));
        let others = self.fresh(now).filter(|(_, a)| !a.holder);
        let better = others.filter(|(ip, a)| (a.standing, Reverse(*ip)) > mine).count();
        self.due + SKEW * u32::try_from(better).unwrap_or(u32::MAX)
    }

    /// How long nothing has to be done, if nothing happens.
    pub fn pause(&self, now: Time) -> Duration {
        let advertise = self.advertised.map_or(now, |at| at + ADVERTISE);
        let next = match self.role {
            // One that is due but cut has nothing to take.
            Role::Backup if self.turn(now) > now || self.connected(now) => advertise.min(self.turn(now)),
            _ => advertise,
        };
        next.saturating_sub(now)
    }

    /// The best peer that stands at least so well.
    fn best(&self, now: Time, least: Standing) -> Option<Ipv4Addr> {
        let able = self.fresh(now).filter(|(_, a)| a.standing >= least);
        able.max_by_key(|(ip, a)| (a.standing, Reverse(*ip))).map(|(ip, _)| ip)
    }

    fn take(&mut self, actions: &mut Vec<Action>) {
        self.seen += 1;
        self.term = self.seen;
        self.role = Role::Holder;
        self.news = true;
        actions.push(Action::Take);
    }

    fn step_down(&mut self, actions: &mut Vec<Action>) {
        self.role = Role::Backup;
        self.doubt = false;
        self.news = true;
        actions.push(Action::Drop);
    }

    fn advertise(&mut self, now: Time, actions: &mut Vec<Action>) {
        if self.alone() {
            return;
        }
        if self.news || self.advertised.is_none_or(|at| now.saturating_sub(at) >= ADVERTISE) {
            self.say(now, None, actions);
            let silent = self.peers.values().flatten().all(|h| now.saturating_sub(h.at) > SILENCE);
            if silent || self.gateway.is_none() {
                actions.push(Action::AskGateway);
            }
        }
    }

    fn say(&mut self, now: Time, successor: Option<Ipv4Addr>, actions: &mut Vec<Action>) {
        self.news = false;
        self.advertised = Some(now);
        actions.push(Action::Send(Advert {
            term: self.term(),
            standing: self.standing(now),
            health: if self.role == Role::Left { Health::Down } else { self.health },
            holder: self.is_holder(),
            successor,
        }));
    }
}

#[cfg(test)]
#[path = "election_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "simulation.rs"]
mod simulation;
