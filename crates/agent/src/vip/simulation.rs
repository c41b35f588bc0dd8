//! Whole elections with everything that can happen to nodes and links, in simulated time.

use proptest::prelude::*;

use super::*;

const STEP: Time = Duration::from_millis(10);
const TICK: u32 = 5;
/// Two may both hold no longer than this. One election, plus the advertisements that loss eats.
const LONGEST_PAIR: Time = Duration::from_millis(1500);
/// No holder although one could: as long as it takes to miss the old one, and once more for a
/// holder that was lost in the middle of an election.
pub const LONGEST_GAP: Time = Duration::from_millis(2500);
/// A holder that is cut from all others gives up.
const LONGEST_CUT: Time = Duration::from_millis(1000);
/// One whose peers have left goes on alone for as long as etcd's word lasts.
const LEFT: Time = Duration::from_secs(30);
/// So late do the health checks notice that etcd has no majority.
const NOT_READY: Time = Duration::from_millis(4500);

#[derive(Debug, Clone, Copy)]
pub enum Fault {
    Kill,
    Start,
    Freeze,
    Thaw,
    /// Stands still for so long on a busy machine: what it is told waits for it.
    Stall(Time),
    Cut,
    Plug,
    Leave,
    Health(Health),
}

#[derive(Clone)]
pub struct Machine {
    ip: Ipv4Addr,
    pub state: Option<State>,
    frozen: bool,
    stalled_until: Time,
    cut: bool,
    /// As its API server would be with etcd, as it is, and since when etcd is missed.
    health: Health,
    told: Health,
    missed: Option<Time>,
    /// What the network says: the address is on this machine.
    pub holds: bool,
    alone_since: Option<Time>,
    inbox: Vec<(Time, Event)>,
    phase: u32,
}

#[derive(Clone)]
pub struct World {
    pub now: Time,
    pub machines: Vec<Machine>,
    /// Pairs that do not hear each other, the lower number first.
    pub broken: BTreeSet<(usize, usize)>,
    /// Of etcd.
    leader: Option<usize>,
    /// When one last left in order.
    left: Option<Time>,
    loss: f64,
    noise: u64,
    pair_since: Option<Time>,
    gap_since: Option<Time>,
    pub moves: u32,
}

impl World {
    pub fn new(size: u8, loss: f64, seed: u64) -> World {
        let machines = (0..size).map(|i| Machine {
            ip: Ipv4Addr::new(192, 168, 49, 2 + i),
            state: None,
            frozen: false,
            stalled_until: Time::ZERO,
            cut: false,
            health: Health::Down,
            told: Health::Down,
            missed: None,
            holds: false,
            alone_since: None,
            inbox: Vec::new(),
            phase: u32::from(i) * 2 % TICK,
        });
        World {
            now: Time::ZERO,
            machines: machines.collect(),
            broken: BTreeSet::new(),
            leader: None,
            left: None,
            loss,
            noise: seed | 1,
            pair_since: None,
            gap_since: None,
            moves: 0,
        }
    }

    /// xorshift: all chance of a run comes from its seed.
    fn chance(&mut self) -> f64 {
        self.noise ^= self.noise << 13;
        self.noise ^= self.noise >> 7;
        self.noise ^= self.noise << 17;
        (self.noise >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn fault(&mut self, who: usize, fault: Fault) {
        let all: BTreeSet<Ipv4Addr> = self.machines.iter().map(|m| m.ip).collect();
        let now = self.now;
        let who = who % self.machines.len();
        let m = &mut self.machines[who];
        match fault {
            Fault::Kill => (m.state, m.frozen, m.stalled_until, m.holds) = (None, false, now, false),
            Fault::Start if m.state.is_none() => {
                (m.told, m.missed) = (Health::Down, None);
                m.inbox.clear();
                m.state = Some(start(m.ip, &all, false, now));
            }
            Fault::Start => {}
            Fault::Freeze => m.frozen = true,
            Fault::Thaw => (m.frozen, m.stalled_until) = (false, now),
            Fault::Stall(time) => m.stalled_until = now + time,
            Fault::Cut => m.cut = true,
            Fault::Plug => m.cut = false,
            Fault::Leave => {
                if m.state.is_some() && !m.frozen && now >= m.stalled_until {
                    self.step(who, Event::Leave);
                    self.machines[who].state = None;
                    self.left = Some(now);
                }
            }
            Fault::Health(health) => m.health = health,
        }
        // What was disturbed gets its time again.
        self.gap_since = None;
        self.pair_since = None;
    }

    /// A link between two machines is cut.
    pub fn break_link(&mut self, a: usize, b: usize) {
        self.broken.insert((a.min(b), a.max(b)));
    }

    fn is_linked(&self, a: usize, b: usize) -> bool {
        let cut = self.machines[a].cut || self.machines[b].cut;
        a == b || !cut && !self.broken.contains(&(a.min(b), a.max(b)))
    }

    pub fn is_able(&self, who: usize) -> bool {
        let m = &self.machines[who];
        m.state.is_some() && !m.frozen && self.now >= m.stalled_until && !m.cut
    }

    /// Is in contact with a majority.
    pub fn has_majority(&self, who: usize) -> bool {
        let all = 0..self.machines.len();
        let reached = all.filter(|other| self.is_able(*other) && self.is_linked(who, *other)).count();
        self.is_able(who) && reached * 2 > self.machines.len()
    }

    /// An API server is ready while it reaches etcd's leader, and one that lost it stays so for a while.
    fn healths(&mut self) {
        let up = |w: &World, i: usize| w.machines[i].state.is_some() && !w.machines[i].frozen;
        let leads = |w: &World, i: usize| {
            let reached = (0..w.machines.len()).filter(|j| up(w, *j) && w.is_linked(i, *j)).count();
            up(w, i) && reached * 2 > w.machines.len()
        };
        let still = self.leader.filter(|i| leads(self, *i));
        self.leader = still.or_else(|| (0..self.machines.len()).find(|i| leads(self, *i)));
        for who in 0..self.machines.len() {
            let reached = self.leader.is_some_and(|leader| self.is_linked(who, leader));
            let now = self.now;
            let m = &mut self.machines[who];
            m.missed = if reached { None } else { m.missed.or(Some(now)) };
            let missed = m.missed.is_some_and(|at| now - at >= NOT_READY || m.told < Health::Ready);
            let health = if missed { m.health.min(Health::Alive) } else { m.health };
            if m.state.is_some() && !m.frozen && now >= m.stalled_until && m.told != health {
                m.told = health;
                self.step(who, Event::Health(health));
            }
        }
    }

    fn step(&mut self, who: usize, event: Event) {
        let Some(state) = self.machines[who].state.take() else { return };
        let (state, actions) = decide(state, event, self.now);
        self.machines[who].state = Some(state);
        for action in actions {
            match action {
                Action::Take => {
                    self.machines[who].holds = true;
                    self.moves += 1;
                }
                Action::Drop(_) => self.machines[who].holds = false,
                Action::Announce => {}
                Action::Send(advert) => {
                    let from = self.machines[who].ip;
                    for to in (0..self.machines.len()).filter(|to| *to != who) {
                        self.post(who, to, Event::Heard(from, advert.clone()));
                    }
                }
            }
        }
    }

    fn post(&mut self, from: usize, to: usize, event: Event) {
        if !self.is_linked(from, to) || self.chance() < self.loss {
            return;
        }
        let delay = STEP * (1 + (self.chance() * 3.0) as u32);
        let at = self.now + delay;
        if self.machines[to].state.is_some() {
            self.machines[to].inbox.push((at, event));
        }
    }

    pub fn run(&mut self, time: Time) -> Result<(), TestCaseError> {
        let end = self.now + time;
        while self.now < end {
            self.now += STEP;
            self.healths();
            for who in 0..self.machines.len() {
                let now = self.now;
                let m = &mut self.machines[who];
                if m.state.is_none() || m.frozen || now < m.stalled_until {
                    continue;
                }
                // As a member does: what waited for too long is not heard.
                m.inbox.retain(|(at, _)| now.saturating_sub(*at) < DOWN);
                m.inbox.sort_by_key(|(at, _)| *at);
                let arrived: Vec<Event> =
                    m.inbox.extract_if(.., |(at, _)| *at <= now).map(|(_, e)| e).collect();
                for event in arrived {
                    self.step(who, event);
                }
                if (now.as_millis() / STEP.as_millis()) as u32 % TICK == self.machines[who].phase {
                    self.step(who, Event::Tick);
                }
            }
            self.check()?;
        }
        Ok(())
    }

    fn check(&mut self) -> Result<(), TestCaseError> {
        let now = self.now;
        let all = || 0..self.machines.len();
        let holders = all().filter(|i| self.is_able(*i) && self.machines[*i].holds).count();
        let could = all().any(|i| self.has_majority(i));
        let since = |since: &mut Option<Time>, bad: bool| {
            *since = bad.then(|| since.unwrap_or(now));
            since.map_or(Time::ZERO, |s| now - s)
        };
        let pair = since(&mut self.pair_since, holders > 1);
        prop_assert!(pair <= LONGEST_PAIR, "{holders} holders for {pair:?} at {now:?}");
        let gap = since(&mut self.gap_since, could && holders == 0);
        prop_assert!(gap <= LONGEST_GAP, "no holder for {gap:?} at {now:?}");
        // Of two, one is no majority: the other takes nothing.
        let alone = self.machines.len() <= 2 || self.left.is_some_and(|at| now - at < LEFT);
        for m in &mut self.machines {
            let runs = m.state.is_some() && !m.frozen && now >= m.stalled_until;
            let cut = since(&mut m.alone_since, m.cut && m.holds && runs && !alone);
            prop_assert!(cut <= LONGEST_CUT, "{} is cut and holds for {cut:?}", m.ip);
        }
        Ok(())
    }

    pub fn start_all(&mut self, health: Health) {
        for who in 0..self.machines.len() {
            self.machines[who].health = health;
            self.fault(who, Fault::Start);
        }
    }

    pub fn holder(&self) -> Option<usize> {
        self.machines.iter().position(|m| m.holds && !m.cut)
    }
}

fn fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        1 => Just(Fault::Kill),
        3 => Just(Fault::Start),
        1 => Just(Fault::Freeze),
        2 => Just(Fault::Thaw),
        2 => (50u64..2000).prop_map(|ms| Fault::Stall(Duration::from_millis(ms))),
        1 => Just(Fault::Cut),
        2 => Just(Fault::Plug),
        1 => Just(Fault::Leave),
        1 => Just(Fault::Health(Health::Down)),
        1 => Just(Fault::Health(Health::Alive)),
        2 => Just(Fault::Health(Health::Ready)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(160))]

    #[test]
    fn whatever_happens_there_is_one_holder_after_one_election(
        size in 1u8..6,
        loss in prop_oneof![Just(0.0), Just(0.05), Just(0.15)],
        seed in any::<u64>(),
        story in prop::collection::vec((0usize..6, fault(), 0u64..3000), 0..25),
    ) {
        let mut world = World::new(size, loss, seed);
        world.start_all(Health::Ready);
        for (who, fault, then) in story {
            world.fault(who, fault);
            world.run(Duration::from_millis(then))?;
        }
        // Peace: all come back, and after one election nothing moves any more.
        world.loss = 0.0;
        for who in 0..usize::from(size) {
            for mend in [Fault::Thaw, Fault::Plug, Fault::Start, Fault::Health(Health::Ready)] {
                world.fault(who, mend);
            }
        }
        world.run(Duration::from_secs(5))?;
        prop_assert_eq!(world.machines.iter().filter(|m| m.holds).count(), 1);
        let moves = world.moves;
        world.run(Duration::from_secs(5))?;
        prop_assert_eq!(world.moves, moves, "the address moves without a reason");
    }

    #[test]
    fn a_dead_holder_is_replaced_within_a_second(size in 3u8..6, seed in any::<u64>(), when in 3000u64..4000) {
        let mut world = World::new(size, 0.0, seed);
        world.start_all(Health::Ready);
        world.run(Duration::from_millis(when))?;
        let holder = world.holder().expect("a holder");
        world.fault(holder, Fault::Kill);
        world.run(Duration::from_millis(800))?;
        prop_assert!(world.holder().is_some_and(|h| h != holder));
    }

    /// None can know whether the other died or was cut off: a holder stays until it notices that etcd has no
    /// majority, and the other takes nothing.
    #[test]
    fn of_two_the_one_that_is_left_takes_nothing(seed in any::<u64>(), first in any::<bool>(), dead in any::<bool>()) {
        let mut world = World::new(2, 0.0, seed);
        world.start_all(Health::Ready);
        world.run(Duration::from_secs(4))?;
        let (had, moves) = (world.holder(), world.moves);
        if dead { world.fault(usize::from(first), Fault::Kill) } else { world.break_link(0, 1) }
        let had = had.filter(|h| !dead || *h != usize::from(first));
        world.run(Duration::from_secs(1))?;
        prop_assert_eq!(world.holder(), had);
        world.run(Duration::from_secs(40))?;
        prop_assert_eq!((world.holder(), world.moves), (None, moves), "not for a moment");
        world.broken.clear();
        world.fault(usize::from(first), Fault::Start);
        world.run(Duration::from_secs(3))?;
        prop_assert!(world.holder().is_some());
    }

    #[test]
    fn a_backup_that_stands_still_takes_nothing(
        size in 3u8..6,
        seed in any::<u64>(),
        when in 3000u64..4000,
        stalls in prop::collection::vec((1usize..6, 300u64..12_000, 500u64..1500), 1..6),
    ) {
        let mut world = World::new(size, 0.0, seed);
        world.start_all(Health::Ready);
        world.run(Duration::from_millis(when))?;
        let (holder, moves) = (world.holder().expect("a holder"), world.moves);
        for (who, stall, then) in stalls {
            let who = (holder + 1 + who % (usize::from(size) - 1)) % usize::from(size);
            world.fault(who, Fault::Stall(Duration::from_millis(stall)));
            world.run(Duration::from_millis(stall + then))?;
        }
        prop_assert_eq!(world.moves, moves, "the address moves without a reason");
    }

    #[test]
    fn nothing_moves_when_all_stand_still_at_once(size in 2u8..6, seed in any::<u64>(), stalls in prop::collection::vec((100u64..12_000, 500u64..1500), 1..6)) {
        let mut world = World::new(size, 0.0, seed);
        world.start_all(Health::Ready);
        world.run(Duration::from_secs(4))?;
        let moves = world.moves;
        for (stall, then) in stalls {
            for who in 0..usize::from(size) {
                world.fault(who, Fault::Stall(Duration::from_millis(stall)));
            }
            world.run(Duration::from_millis(stall + then))?;
        }
        prop_assert_eq!(world.moves, moves, "the address moves without a reason");
    }

    #[test]
    fn an_ailing_api_server_moves_the_address_once_and_without_a_pair(size in 2u8..6, seed in any::<u64>()) {
        let mut world = World::new(size, 0.0, seed);
        world.start_all(Health::Ready);
        world.run(Duration::from_secs(4))?;
        let (holder, moves) = (world.holder().expect("a holder"), world.moves);
        world.fault(holder, Fault::Health(Health::Down));
        world.run(Duration::from_millis(400))?;
        prop_assert_eq!(world.holder(), Some(holder), "a moment is nothing");
        world.run(Duration::from_millis(250))?;
        prop_assert!(world.holder().is_some_and(|h| h != holder));
        world.fault(holder, Fault::Health(Health::Ready));
        world.run(Duration::from_secs(10))?;
        prop_assert_eq!(world.moves, moves + 1, "it does not go back");
    }
}
