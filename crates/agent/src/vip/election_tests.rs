use super::*;

fn ip(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(192, 168, 49, last)
}

fn ms(n: u64) -> Time {
    Duration::from_millis(n)
}

fn advert(term: u64, standing: Standing, holder: bool) -> Advert {
    let health = if standing >= Standing::New { Health::Ready } else { Health::Down };
    Advert { term, standing, health, holder, successor: None }
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

    /// Lets time pass while `each` is heard every 50 ms; all that was done meanwhile.
    fn pass(&mut self, time: Time, each: &[(u8, Advert)]) -> Vec<Action> {
        let end = self.now + time;
        let mut done = Vec::new();
        while self.now < end {
            self.now += ms(50);
            for (from, advert) in each {
                done.extend(self.on(Event::Heard(ip(*from), *advert)));
            }
            done.extend(self.on(Event::Tick));
        }
        done
    }

    fn fit(mut self) -> Bench {
        self.on(Event::Health(Health::Ready));
        self.pass(SETTLE + ms(100), &[(2, advert(4, Standing::Fit, true))]);
        self
    }
}

fn took(actions: &[Action]) -> bool {
    actions.contains(&Action::Take)
}

fn dropped(actions: &[Action]) -> bool {
    actions.contains(&Action::Drop)
}

fn successor(actions: &[Action]) -> Option<Ipv4Addr> {
    actions.iter().find_map(|a| match a {
        Action::Send(advert) => advert.successor,
        _ => None,
    })
}

#[test]
fn alone_it_holds_at_once_and_says_nothing() {
    let mut b = Bench::new(3, &[3]);
    assert_eq!(b.on(Event::Tick), [Action::Take]);
    assert_eq!(b.pass(ms(5000), &[]), []);
    b.on(Event::Health(Health::Down));
    assert!(b.state.is_holder() && b.state.backends(b.now).is_empty());
    // A cluster that grows changes nothing about that, except that it talks.
    b.state = set_peers(b.state.clone(), &[2, 3].map(ip).into());
    assert!(matches!(b.on(Event::Tick)[..], [Action::Send(Advert { holder: true, .. }), Action::AskGateway]));
}

#[test]
fn one_that_holds_already_stays_the_holder() {
    let mut state = start(ip(3), &[2, 3].map(ip).into(), true, ms(0));
    let actions;
    (state, actions) = decide(state, Event::Tick, ms(50));
    assert!(state.is_holder() && !took(&actions) && !dropped(&actions));
}

#[test]
fn a_holder_that_is_heard_is_left_alone_even_by_a_lower_address() {
    let mut b = Bench::new(2, &[2, 3, 4]);
    b.on(Event::Health(Health::Ready));
    for standing in [Standing::Down, Standing::New, Standing::Fit] {
        assert!(!took(&b.pass(ms(3000), &[(3, advert(1, standing, true))])), "{standing:?}");
    }
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
        let rest = [(other, advert(4, standing, false))];
        b.pass(ms(50), &rest);
        assert!(!took(&b.pass(within - ms(150), &rest)), "{me} was too quick");
        assert!(took(&b.pass(ms(150), &rest)), "{me} was too slow");
        assert_eq!(b.state.term(), 5);
    }
}

#[test]
fn the_successor_takes_at_once_and_the_others_soon_if_it_does_not() {
    let handover = Advert { successor: Some(ip(3)), ..advert(4, Standing::Down, false) };
    let mut b = Bench::new(3, &[2, 3, 4]).fit();
    assert!(took(&b.on(Event::Heard(ip(2), handover))));

    let mut b = Bench::new(4, &[2, 3, 4]).fit();
    assert!(!took(&b.on(Event::Heard(ip(2), handover))));
    assert!(!took(&b.pass(ms(100), &[])));
    assert!(took(&b.pass(ms(200), &[])));
}

#[test]
fn an_ailing_holder_hands_over_only_to_one_that_is_fit() {
    for (standing, moves) in [(Standing::Down, false), (Standing::New, false), (Standing::Fit, true)] {
        let mut b = Bench::new(3, &[3, 4]);
        b.on(Event::Health(Health::Alive));
        let peer = [(4, advert(1, standing, false))];
        assert!(took(&b.pass(ms(2600), &peer)));
        assert!(b.pass(ms(1000), &peer).iter().all(|a| matches!(a, Action::Send(_) | Action::AskGateway)));
        let actions = b.on(Event::Health(Health::Down));
        assert_eq!((dropped(&actions), successor(&actions)), (moves, moves.then(|| ip(4))), "{standing:?}");
        if moves {
            let at = |wanted: fn(&Action) -> bool| actions.iter().position(wanted);
            assert!(at(|a| *a == Action::Drop) < at(|a| matches!(a, Action::Send(_))), "dropped first");
        }
    }
}

#[test]
fn of_two_holders_the_later_election_wins_then_the_better_then_the_lower_address() {
    let cases = [
        (advert(6, Standing::Down, true), 4, true),
        (advert(4, Standing::Fit, true), 2, false),
        (advert(5, Standing::Fit, true), 4, false),
        (advert(5, Standing::Fit, true), 2, true),
        (advert(5, Standing::New, true), 2, false),
    ];
    for (theirs, from, yields) in cases {
        let mut b = Bench::new(3, &[2, 3, 4]).fit();
        b.pass(ms(1000), &[]);
        assert_eq!((b.state.is_holder(), b.state.term()), (true, 5));
        let actions = b.on(Event::Heard(ip(from), theirs));
        assert_eq!(dropped(&actions), yields, "{theirs:?} from {from}");
        assert_eq!(actions.contains(&Action::Announce), !yields);
    }
}

#[test]
fn one_that_is_cut_gives_up_and_takes_nothing() {
    let mut b = Bench::new(3, &[2, 3, 4]).fit();
    b.on(Event::Gateway);
    let peer = [(4, advert(4, Standing::Fit, false))];
    assert!(took(&b.pass(ms(2000), &peer)));
    // Peers silent, but the cable is plugged in: they are dead, we are not.
    for _ in 0..40 {
        assert!(!dropped(&b.pass(ms(50), &[])));
        b.on(Event::Gateway);
    }
    let actions = b.pass(ms(700), &[]);
    assert!(dropped(&actions) && actions.contains(&Action::AskGateway));
    assert!(!took(&b.pass(ms(5000), &[])));
    // Plugged in again it listens before it takes.
    for _ in 0..10 {
        b.on(Event::Gateway);
        assert!(!took(&b.pass(ms(50), &[])));
    }
    b.on(Event::Gateway);
    assert!(took(&b.pass(ms(150), &[])));
}

#[test]
fn one_that_slept_listens_before_anything_else() {
    let peer = [(4, advert(4, Standing::Fit, false))];
    let slept = || {
        let mut b = Bench::new(3, &[2, 3, 4]).fit();
        assert!(took(&b.pass(ms(1000), &peer)));
        b.now += ms(700);
        // Somebody who does not hold the address proves nothing.
        assert_eq!(b.on(Event::Heard(ip(4), peer[0].1)), []);
        assert!(!b.state.is_sure());
        b
    };
    // Another has taken over: given up before anything is said.
    let mut b = slept();
    assert_eq!(b.on(Event::Heard(ip(2), advert(9, Standing::Fit, true)))[0], Action::Drop);
    assert!(b.state.is_sure() && !took(&b.pass(ms(500), &[])));
    // All have slept: nothing has happened.
    let mut b = slept();
    assert!(matches!(
        b.on(Event::Tick)[..],
        [Action::Announce, Action::Send(Advert { holder: true, .. }), ..]
    ));
    assert!(b.state.is_sure());
}

#[test]
fn who_leaves_names_a_successor_and_is_out() {
    let mut b = Bench::new(3, &[2, 3, 4]).fit();
    let peers = [(4, advert(4, Standing::New, false))];
    assert!(took(&b.pass(ms(1000), &peers)));
    let actions = b.on(Event::Leave);
    assert_eq!((actions[0], successor(&actions)), (Action::Drop, Some(ip(4))));
    assert!(!took(&b.pass(ms(3000), &[])));
    // A backup just says so.
    let mut b = Bench::new(3, &[2, 3, 4]).fit();
    let actions = b.on(Event::Leave);
    assert!(!dropped(&actions) && successor(&actions).is_none());
}

#[test]
fn connections_go_to_the_ready_or_else_to_the_living() {
    let set = |of: &[u8]| of.iter().copied().map(ip).collect::<BTreeSet<_>>();
    let told = |health| Advert { health, ..advert(4, Standing::Fit, false) };
    let mut b = Bench::new(3, &[2, 3, 4]);
    b.on(Event::Health(Health::Alive));
    b.on(Event::Heard(ip(4), told(Health::Alive)));
    assert_eq!(b.state.backends(b.now), set(&[3, 4]));
    b.on(Event::Heard(ip(2), told(Health::Ready)));
    assert_eq!(b.state.backends(b.now), set(&[2]));
    b.on(Event::Health(Health::Ready));
    assert_eq!(b.state.backends(b.now), set(&[2, 3]));
    assert!(!b.state.is_lost(ip(4), b.now) && !b.state.is_lost(ip(2), b.now));
    b.pass(ms(650), &[(4, told(Health::Ready))]);
    assert_eq!(b.state.backends(b.now), set(&[3, 4]), "2 is silent");
    assert!(b.state.is_lost(ip(2), b.now));
    b.on(Event::Heard(ip(4), advert(4, Standing::Leaving, false)));
    assert_eq!(b.state.backends(b.now), set(&[3]));
    b.on(Event::Health(Health::Down));
    assert!(b.state.backends(b.now).is_empty() && b.state.is_lost(ip(3), b.now));
}

#[test]
fn it_wakes_when_something_is_due() {
    let mut b = Bench::new(3, &[2, 3]).fit();
    b.on(Event::Heard(ip(2), advert(4, Standing::Fit, true)));
    let mut waits = Vec::new();
    while !b.state.is_holder() {
        waits.push(b.state.pause(b.now));
        b.now += b.state.pause(b.now);
        b.on(Event::Tick);
    }
    assert!(waits.iter().all(|w| (ms(1)..=ADVERTISE).contains(w)), "{waits:?}");
    assert_eq!(waits.iter().sum::<Duration>(), DOWN, "taken in the moment it was due");
    assert_eq!(b.state.pause(b.now), ADVERTISE);
}

#[test]
fn strangers_are_not_heard() {
    let mut b = Bench::new(3, &[2, 3]);
    b.on(Event::Heard(ip(99), advert(9, Standing::Fit, true)));
    assert_eq!((b.state.term(), b.state.holder(b.now)), (0, None));
}
