//! The holder of the virtual address is lost, again and again, while clients read and write through
//! it: no write that was acknowledged is lost, and the cluster is whole again after each time.
//! Then links between control planes are cut.
//!
//! FAILOVER_ROUNDS says how often for each fault; `make failover` does it twenty times and compares
//! what clients noticed with the aims. Here nothing is said about times.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use system_tests::etcd::leads;
use system_tests::machine::{Cable, holder};
use system_tests::traffic::{Disturbance, KINDS, Kind, percentile};
use system_tests::{Footprint, Lab, Machine, Traffic, eventually, rounds};

const SOON: Duration = Duration::from_secs(60);
const VIP: &str = "192.168.49.254";
const PLANES: usize = 3;
/// Of the aims: half of all fail-overs, and all but one in a hundred.
const AIMS: [(usize, Duration); 2] = [(50, Duration::from_secs(1)), (99, Duration::from_secs(3))];

#[derive(Debug, Clone, Copy)]
enum Fault {
    /// All processes of the node at once.
    Kill,
    /// Its API server stands still.
    Freeze,
    /// Its cable is pulled out of the bridge.
    Cut,
}

#[test]
fn the_holder_is_lost_again_and_again() {
    let lab = Lab::new();
    let before = Footprint::take(&lab);
    lab.manykube(&["start", "--ha"]).ok();
    let traffic = Traffic::start(&lab, &format!("{VIP}:8443"));
    let rounds = rounds("FAILOVER_ROUNDS", 1);
    whole(&lab, &traffic);

    println!("gap: longest time without an answer; until: when the last one asked that got none; in ms");
    println!(
        "{:7} {:3} {:14} {:7} {:>24} {:>24} {:>24} {:>15}",
        "fault", "", "holder", "etcd", "read", "write", "kept", "mending"
    );
    for fault in [Fault::Kill, Fault::Freeze, Fault::Cut] {
        let struck: Vec<[Disturbance; 3]> = (1..=rounds).map(|n| strike(&lab, &traffic, fault, n)).collect();
        for (i, kind) in KINDS.into_iter().enumerate() {
            let gaps: Vec<Duration> = struck.iter().map(|round| round[i].gap).collect();
            summary(fault, kind, &gaps);
        }
    }
    some_links_are_cut(&lab, &traffic);
    the_holder_is_cut_off(&lab, &traffic);
    println!("{} acknowledged writes, none lost", traffic.nothing_is_lost(&lab));
    lab.manykube(&["delete"]).ok();
    before.assert_nothing_left();
}

/// One link of the holder: it stays. Both: another has the address, and it alone, though the host reaches all.
fn some_links_are_cut(lab: &Lab, traffic: &Traffic) {
    let had = holder(lab, VIP);
    let term = had.term();
    let others: Vec<String> =
        Machine::all(lab).into_iter().map(|m| m.name).filter(|name| *name != had.name).collect();
    lab.manykube(&["fault", "cut", &had.name, "--from", &others[0]]).ok();
    for _ in 0..20 {
        let now = holder(lab, VIP);
        assert_eq!((&now.name, now.term()), (&had.name, term), "it moved though one link is cut");
        traffic.calm(Duration::from_millis(200));
    }
    lab.manykube(&["fault", "cut", &had.name, "--from", &others.join(",")]).ok();
    let next = eventually("one with a majority has the address", SOON, || {
        let now = holder(lab, VIP);
        if now.name == had.name { Err(format!("{} still has it", now.name)) } else { Ok(now) }
    });
    let term = next.term();
    for _ in 0..20 {
        let now = holder(lab, VIP);
        assert_eq!((&now.name, now.term()), (&next.name, term), "it does not stay");
        traffic.calm(Duration::from_millis(200));
    }
    lab.manykube(&["fault", "heal"]).ok();
    whole(lab, traffic);
    let now = holder(lab, VIP);
    assert_eq!((&now.name, now.term()), (&next.name, term), "it moved when the links were back");
}

/// It says no word any more, not even that it has the address: its kernel and its agent go on.
fn the_holder_is_cut_off(lab: &Lab, traffic: &Traffic) {
    let had = holder(lab, VIP);
    assert!(had.answers_arp(VIP), "{} holds the address", had.name);
    lab.manykube(&["fault", "cut", &had.name]).ok();
    assert!(!had.answers_arp(VIP), "{} is cut off", had.name);
    eventually("another answers for the address", SOON, || {
        assert!(!had.answers_arp(VIP), "{} is cut off", had.name);
        let next = Machine::all(lab).into_iter().find(|m| m.name != had.name && m.holds(VIP));
        if next.is_some_and(|m| m.answers_arp(VIP)) { Ok(()) } else { Err("no node yet".to_owned()) }
    });
    for _ in 0..20 {
        assert!(!had.answers_arp(VIP), "{} is cut off", had.name);
    }
    traffic.calm(Duration::from_millis(1500));
    let listed = lab.manykube(&["fault", "list"]).ok();
    assert!(listed.stdout.contains("cut off"), "{}", listed.stdout);
    lab.manykube(&["fault", "heal"]).ok();
    whole(lab, traffic);
}

/// All control planes take part again, and all clients are served.
fn whole(lab: &Lab, traffic: &Traffic) {
    lab.nothing_to_do();
    eventually("connections are spread over all", SOON, || {
        let backends: Vec<usize> = Machine::all(lab).iter().map(Machine::backends).collect();
        if backends == [PLANES; PLANES] { Ok(()) } else { Err(format!("{backends:?}")) }
    });
    // Longer than an API server has to have answered before the address may move to it.
    traffic.calm(Duration::from_secs(3));
}

/// What each kind of client noticed until all were served again.
fn strike(lab: &Lab, traffic: &Traffic, fault: Fault, round: usize) -> [Disturbance; 3] {
    let victim = holder(lab, VIP);
    let cable = victim.cable();
    // Then etcd has to elect another as well, which takes longer than anything else.
    let role = if leads(lab, &victim.name) { "leader" } else { "" };
    let began = Instant::now();
    match fault {
        Fault::Kill => victim.kill(),
        Fault::Freeze => victim.signal_api_server(Signal::SIGSTOP),
        Fault::Cut => cable.pull(),
    }
    eventually("another has the address", SOON, || {
        let now = holder(lab, VIP).name;
        if now == victim.name { Err(format!("{now} still has it")) } else { Ok(()) }
    });
    traffic.calm(Duration::from_millis(1500));
    let struck = KINDS.map(|kind| traffic.disturbance(kind, began));
    let mending = Instant::now();
    mend(lab, &victim, &cable, fault);
    whole(lab, traffic);
    let longest = KINDS.map(|kind| traffic.disturbance(kind, mending).gap).into_iter().max();
    let cell = |d: Disturbance| format!("gap {} until {}", d.gap.as_millis(), d.until.as_millis());
    let [read, write, kept] = struck.map(cell);
    println!(
        "{:7} {round:3} {:14} {role:7} {read:>24} {write:>24} {kept:>24} {:>15}",
        format!("{fault:?}"),
        victim.name,
        format!("gap {}", longest.unwrap_or_default().as_millis())
    );
    struck
}

fn mend(lab: &Lab, victim: &Machine, cable: &Cable, fault: Fault) {
    match fault {
        Fault::Kill => {
            victim.ends();
            lab.manykube(&["start"]).ok();
        }
        Fault::Freeze => victim.signal_api_server(Signal::SIGCONT),
        Fault::Cut => cable.plug(),
    }
}

fn summary(fault: Fault, kind: Kind, gaps: &[Duration]) {
    let parts = AIMS.map(|(percent, aim)| {
        let seen = percentile(gaps, percent);
        let verdict = if seen <= aim { "within" } else { "OVER" };
        format!("p{percent} {} ms ({verdict} {} ms)", seen.as_millis(), aim.as_millis())
    });
    println!("{fault:?}, {kind:?}, {} times: {}", gaps.len(), parts.join(", "));
}
