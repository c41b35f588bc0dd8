use super::*;

fn ip(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(192, 168, 49, last)
}

fn ms(n: u64) -> Time {
    Duration::from_millis(n)
}

/// Of a peer that hears all others.
fn advert(term: u64, standing: Standing) -> Advert {
    let health = if standing >= Standing::New { Health::Ready } else { Health::Down };
    let hears = [2, 3, 4].map(ip).into();
    Advert { term, standing, health, claim: None, successor: None, majority: true, hears }
}

/// Of a peer that follows the holder, or is it.
fn follows(term: u64, standing: Standing, holder: u8) -> Advert {
    let claim = Some(Claim { holder: ip(holder), term, age: Time::ZERO, hops: 1 });
    Advert { claim, ..advert(term, standing) }
}

/// A node of three (itself .3) at work, with its clock.
struct Bench {
    state: State,
    now: Time,
}

impl Bench {
    fn new(last: u8, of: &[u8]) -> Bench {
        let all = of.iter().copied().map(ip).collect();
        Bench { state: start(ip(last), &all, false, ms(0)), now: ms(0) }
    }

    fn on(&mut self, event: Event) -> Vec<Action> {
        let (state, actions) = decide(self.state.clone(), event, self.now);
        self.state = state;
        actions
    }

    fn hear(&mut self, from: u8, advert: &Advert) -> Vec<Action> {
        self.on(Event::Heard(ip(from), advert.clone()))
    }

    /// Lets time pass while `each` is heard every 50 ms; all that was done meanwhile.
    fn pass(&mut self, time: Time, each: &[(u8, Advert)]) -> Vec<Action> {
        let end = self.now + time;
        let mut done = Vec::new();
        while self.now < end {
            self.now += ms(50);
            for (from, advert) in each {
                done.extend(self.hear(*from, advert));
            }
            done.extend(self.on(Event::Tick));
        }
        done
    }

    fn fit(mut self) -> Bench {
        self.on(Event::Health(Health::Alive));
        let all =
            [(2, follows(4, Standing::Fit, 2)), (3, advert(4, Standing::Fit)), (4, advert(4, Standing::Fit))];
        self.pass(SETTLE + ms(100), &all);
        self
    }
}

fn took(actions: &[Action]) -> bool {
    actions.contains(&Action::Take)
}

fn dropped(actions: &[Action]) -> Option<Why> {
    actions.iter().find_map(|a| match a {
        Action::Drop(why) => Some(*why),
        _ => None,
    })
}

fn sent(actions: &[Action]) -> Option<&Advert> {
    actions.iter().find_map(|a| match a {
        Action::Send(advert) => Some(advert),
        _ => None,
    })
}

fn successor(actions: &[Action]) -> Option<Ipv4Addr> {
    sent(actions).and_then(|advert| advert.successor)
}

#[test]
fn alone_it_holds_at_once_and_says_nothing() {
    let mut b = Bench::new(3, &[3]);
    assert_eq!(b.on(Event::Tick), [Action::Take]);
    assert_eq!(b.pass(ms(5000), &[]), []);
    b.on(Event::Health(Health::Down));
    assert!(b.state.is_holder() && b.state.backends().is_empty());
    // A cluster that grows changes nothing about that, except that it talks.
    let actions = b.on(Event::Peers([2, 3].map(ip).into()));
    assert!(matches!(&actions[..], [Action::Send(advert)] if advert.holds(ip(3))));
}

#[test]
fn one_that_held_alone_keeps_the_address_until_the_others_come() {
    let mut state = start(ip(3), &[2, 3, 4].map(ip).into(), true, ms(0));
    let pass = |state: State, from: u64, to: u64| {
        (from..to).step_by(100).fold(state, |state, now| decide(state, Event::Tick, ms(now)).0)
    };
    // They may take a while, and so may its own API server.
    state = pass(state, 0, 60_000);
    assert!(state.is_holder());
    (state, _) = decide(state, Event::Heard(ip(4), advert(0, Standing::Down)), ms(60_000));
    state = pass(state, 60_100, 60_500);
    assert!(state.is_holder());
    state = pass(state, 60_500, 61_000);
    assert!(!state.is_holder(), "now it has to have a majority like any other");
}

#[test]
fn with_half_of_them_a_holder_stays_while_etcd_has_a_majority() {
    let mut b = Bench::new(3, &[2, 3]).fit();
    b.on(Event::Health(Health::Ready));
    assert!(took(&b.pass(ms(1000), &[(2, advert(4, Standing::Fit))])));
    // The other is slow, or only just about to join.
    assert_eq!(dropped(&b.pass(ms(60_000), &[])), None);
    b.on(Event::Health(Health::Alive));
    assert_eq!(dropped(&b.pass(ms(9_500), &[])), None);
    assert_eq!(dropped(&b.pass(ms(1000), &[])), Some(Why::Lost));
    // One that does not hold it takes nothing.
    let mut b = Bench::new(3, &[2, 3]).fit();
    b.on(Event::Health(Health::Ready));
    assert!(!took(&b.pass(ms(1000), &[(2, follows(4, Standing::Fit, 2))])));
    assert!(!took(&b.pass(ms(15_000), &[])));
}

#[test]
fn those_that_left_or_never_came_do_not_count_while_etcd_has_a_majority() {
    // It begins alone, after a recovery: with etcd's word it takes the address.
    let mut b = Bench::new(3, &[2, 3, 4]);
    b.on(Event::Health(Health::Alive));
    assert!(!took(&b.pass(ms(30_000), &[])));
    b.on(Event::Health(Health::Ready));
    assert!(!took(&b.pass(ms(500), &[])) && took(&b.pass(ms(200), &[])));
    // Not if a peer speaks with another key, or in the words of an earlier version.
    let mut b = Bench::new(3, &[2, 3]);
    b.on(Event::Health(Health::Ready));
    for _ in 0..200 {
        b.on(Event::Noise(ip(2)));
        assert!(!took(&b.pass(ms(150), &[])));
    }
    // One of two says that it leaves: the other goes on, also without the host (finding 15).
    let mut b = Bench::new(3, &[2, 3]).fit();
    b.on(Event::Health(Health::Ready));
    b.hear(2, &Advert { successor: Some(ip(3)), ..advert(4, Standing::Leaving) });
    assert!(b.state.is_holder());
    assert_eq!(dropped(&b.pass(ms(60_000), &[])), None);
}

#[test]
fn a_majority_is_heard_both_ways() {
    for (hears, has) in [(vec![2, 4], false), (vec![2, 3, 4], true)] {
        let mut b = Bench::new(3, &[2, 3, 4]).fit();
        let peer = Advert { hears: hears.into_iter().map(ip).collect(), ..advert(4, Standing::Fit) };
        assert_eq!(took(&b.pass(ms(2000), &[(4, peer)])), has);
    }
}

#[test]
fn a_holder_that_is_heard_is_left_alone_even_by_a_lower_address() {
    let mut b = Bench::new(2, &[2, 3, 4]);
    b.on(Event::Health(Health::Ready));
    for standing in [Standing::Down, Standing::New, Standing::Fit] {
        assert!(!took(&b.pass(ms(3000), &[(3, follows(1, standing, 3))])), "{standing:?}");
    }
}

#[test]
fn a_holder_that_another_hears_is_left_alone() {
    let mut b = Bench::new(3, &[2, 3, 4]).fit();
    assert!(!took(&b.pass(ms(10_000), &[(4, follows(4, Standing::Fit, 2))])));
    assert_eq!(b.state.holder(), Some(ip(2)));
    let passed_on = b.pass(ms(150), &[(4, follows(4, Standing::Fit, 2))]);
    assert!(sent(&passed_on).is_some_and(|a| a.claim.is_some_and(|c| c.holder == ip(2))));
    // What the other heard is as old as it says.
    let mut old = follows(4, Standing::Fit, 2);
    old.claim = old.claim.map(|claim| Claim { age: ms(590), ..claim });
    assert!(!took(&b.on(Event::Heard(ip(4), old.clone()))));
    let gone = advert(4, Standing::Fit);
    assert!(took(&b.pass(ms(900), &[(4, gone)])));
}

#[test]
fn the_best_candidate_replaces_a_silent_holder_and_the_others_wait_for_it() {
    let cases = [
        // (own address, own health, the other backup's address and standing) -> takes within
        (3, Health::Ready, 4, Standing::Fit, ms(650)),
        (4, Health::Ready, 3, Standing::Fit, ms(750)),
        (4, Health::Ready, 3, Standing::Down, ms(650)),
        (3, Health::Down, 4, Standing::Fit, ms(750)),
    ];
    for (me, health, other, standing, within) in cases {
        let mut b = Bench::new(me, &[2, 3, 4]).fit();
        b.on(Event::Health(health));
        let rest = [(other, advert(4, standing))];
        b.pass(ms(50), &rest);
        assert!(!took(&b.pass(within - ms(150), &rest)), "{me} was too quick");
        assert!(took(&b.pass(ms(150), &rest)), "{me} was too slow");
        assert_eq!(b.state.term(), 5);
    }
}

#[test]
fn the_successor_takes_at_once_and_the_others_soon_if_it_does_not() {
    let handover = Advert { successor: Some(ip(3)), ..advert(4, Standing::Down) };
    let mut b = Bench::new(3, &[2, 3, 4]).fit();
    assert!(took(&b.hear(2, &handover)));
    assert_eq!(b.state.former(), Some(ip(2)));

    let mut b = Bench::new(4, &[2, 3, 4]).fit();
    assert!(!took(&b.hear(2, &handover)));
    assert!(!took(&b.pass(ms(100), &[])));
    assert!(took(&b.pass(ms(200), &[])));
}

#[test]
fn an_ailing_holder_hands_over_only_to_one_that_is_fit() {
    for (standing, moves) in [(Standing::Down, false), (Standing::New, false), (Standing::Fit, true)] {
        let mut b = Bench::new(3, &[3, 4]);
        b.on(Event::Health(Health::Alive));
        let peer = [(4, advert(1, standing))];
        assert!(took(&b.pass(ms(2600), &peer)));
        assert!(b.pass(ms(1000), &peer).iter().all(|a| matches!(a, Action::Send(_))));
        b.on(Event::Health(Health::Down));
        assert_eq!(dropped(&b.pass(AILING - ms(50), &peer)), None);
        let actions = b.pass(ms(50), &peer);
        let why = moves.then_some(Why::Replaced);
        let named = actions.iter().rev().find_map(|a| successor(std::slice::from_ref(a)));
        assert_eq!((dropped(&actions), named), (why, moves.then(|| ip(4))), "{standing:?}");
        assert!(
            !moves || matches!(actions[actions.len() - 2..], [Action::Drop(_), Action::Send(_)]),
            "dropped first"
        );
    }
}

#[test]
fn of_two_holders_the_later_election_wins_and_then_the_lower_address() {
    let cases = [
        (follows(6, Standing::Down, 4), 4, true),
        (follows(4, Standing::Fit, 2), 2, false),
        (follows(5, Standing::Fit, 4), 4, false),
        (follows(5, Standing::New, 2), 2, true),
        // By the word of a third.
        (follows(6, Standing::Fit, 2), 4, true),
        (follows(4, Standing::Fit, 2), 4, false),
    ];
    for (theirs, from, yields) in cases {
        let mut b = Bench::new(3, &[2, 3, 4]).fit();
        b.pass(ms(1000), &[(4, advert(4, Standing::Fit))]);
        assert_eq!((b.state.is_holder(), b.state.term()), (true, 5));
        let actions = b.hear(from, &theirs);
        assert_eq!(dropped(&actions), yields.then_some(Why::Replaced), "{theirs:?} from {from}");
        assert_eq!(actions.contains(&Action::Announce), !yields);
    }
}

#[test]
fn one_without_a_majority_gives_up_and_takes_nothing() {
    let mut b = Bench::new(3, &[2, 3, 4]).fit();
    let peer = [(4, advert(4, Standing::Fit))];
    assert!(took(&b.pass(ms(2000), &peer)));
    assert_eq!(dropped(&b.pass(ms(500), &[])), None);
    assert_eq!(dropped(&b.pass(ms(200), &[])), Some(Why::Lost));
    assert!(!took(&b.pass(ms(60_000), &[])));
    // In contact again it follows the one that there is.
    assert!(!took(&b.pass(ms(2000), &[(4, follows(9, Standing::Fit, 4))])));
    assert_eq!(b.state.holder(), Some(ip(4)));
}

#[test]
fn one_that_slept_listens_before_anything_else() {
    let peer = [(4, advert(4, Standing::Fit))];
    let slept = || {
        let mut b = Bench::new(3, &[2, 3, 4]).fit();
        assert!(took(&b.pass(ms(1000), &peer)));
        b.now += ms(11_000);
        // One that does not hold the address proves nothing.
        assert_eq!(b.hear(4, &peer[0].1), []);
        assert!(!b.state.is_sure());
        b
    };
    // Another has taken over: given up before anything is said.
    let mut b = slept();
    assert_eq!(b.hear(2, &follows(9, Standing::Fit, 2))[0], Action::Drop(Why::Replaced));
    assert!(b.state.is_sure() && !took(&b.pass(ms(500), &[])));
    // All have slept: nothing has happened.
    let mut b = slept();
    let actions = b.on(Event::Tick);
    assert!(matches!(&actions[..], [Action::Announce, Action::Send(advert)] if advert.holds(ip(3))));
    assert!(b.state.is_sure());
    // A backup that slept listens for as long as a silence takes.
    for slept in [301, 700, 11_000] {
        let mut b = Bench::new(3, &[2, 3, 4]).fit();
        b.now += ms(slept);
        assert!(!took(&b.pass(ms(500), &peer)), "after {slept}");
        assert!(took(&b.pass(ms(300), &peer)), "after {slept}");
    }
}

#[test]
fn who_leaves_names_a_successor_and_is_out() {
    let mut b = Bench::new(3, &[2, 3, 4]).fit();
    let peers = [(4, advert(4, Standing::New))];
    assert!(took(&b.pass(ms(1000), &peers)));
    let actions = b.on(Event::Leave);
    assert_eq!((&actions[0], successor(&actions)), (&Action::Drop(Why::Lost), Some(ip(4))));
    assert!(!took(&b.pass(ms(3000), &[])));
    // A backup just says so.
    let mut b = Bench::new(3, &[2, 3, 4]).fit();
    let actions = b.on(Event::Leave);
    assert!(dropped(&actions).is_none() && successor(&actions).is_none());
}

#[test]
fn connections_go_to_the_ready_or_else_to_the_living() {
    let set = |of: &[u8]| of.iter().copied().map(ip).collect::<BTreeSet<_>>();
    let told = |health| Advert { health, ..advert(4, Standing::Fit) };
    let mut b = Bench::new(3, &[2, 3, 4]);
    b.on(Event::Health(Health::Alive));
    b.hear(4, &told(Health::Alive));
    assert_eq!(b.state.backends(), set(&[3, 4]));
    b.hear(2, &told(Health::Ready));
    assert_eq!(b.state.backends(), set(&[2]));
    b.on(Event::Health(Health::Ready));
    assert_eq!(b.state.backends(), set(&[2, 3]));
    assert!(!b.state.is_lost(ip(4)) && !b.state.is_lost(ip(2)));
    b.pass(ms(650), &[(4, told(Health::Ready))]);
    assert_eq!(b.state.backends(), set(&[3, 4]), "2 is silent");
    assert!(b.state.is_lost(ip(2)));
    b.hear(4, &advert(4, Standing::Leaving));
    assert_eq!(b.state.backends(), set(&[3]));
    b.on(Event::Health(Health::Down));
    assert!(b.state.backends().is_empty() && b.state.is_lost(ip(3)));
}

#[test]
fn it_wakes_when_something_is_due() {
    let mut b = Bench::new(3, &[2, 3, 4]).fit();
    b.hear(4, &advert(4, Standing::Fit));
    b.hear(2, &follows(4, Standing::Fit, 2));
    let mut waits = Vec::new();
    while !b.state.is_holder() {
        waits.push(b.state.pause());
        b.now += b.state.pause();
        b.hear(4, &advert(4, Standing::Fit));
        b.on(Event::Tick);
    }
    assert!(waits.iter().all(|w| (ms(1)..=ADVERTISE).contains(w)), "{waits:?}");
    assert_eq!(waits.iter().sum::<Duration>(), DOWN, "taken in the moment it was due");
    assert_eq!(b.state.pause(), ADVERTISE);
}

#[test]
fn strangers_are_not_heard() {
    let mut b = Bench::new(3, &[2, 3]);
    b.hear(99, &follows(9, Standing::Fit, 99));
    b.hear(2, &follows(9, Standing::Fit, 99));
    assert_eq!(b.state.holder(), None);
}

#[test]
fn the_last_election_is_the_last() {
    let mut b = Bench::new(3, &[2, 3, 4]).fit();
    let peer = [(4, advert(u64::MAX, Standing::Fit))];
    assert!(took(&b.pass(ms(2000), &peer)));
    assert_eq!(b.state.term(), u64::MAX);
}
