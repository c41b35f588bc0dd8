//! What happens to a holder, and how long clients notice it.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use model::node_spec::{Health, NodeState};
use nix::sys::signal::Signal;
use tokio::task::LocalSet;
use tokio::time::{sleep, timeout};

use crate::client::{self, SHORT, Watcher};
use crate::ensure;
use crate::lab::{Lab, VIP};

/// Of the aims: failover p50 ≤ 1 s, p99 ≤ 3 s.
const LONGEST: Duration = Duration::from_secs(3);

pub async fn all(rounds: u32) -> Result<()> {
    let mut three = Lab::new(3)?;
    let done = LocalSet::new().run_until(story(&mut three, rounds)).await;
    explained(&three, done)?;
    drop(three);
    let mut five = Lab::new(5)?;
    let done = LocalSet::new().run_until(come_and_go(&mut five)).await;
    explained(&five, done.context("five that come and go"))
}

/// A failure, with what the agents said.
fn explained(lab: &Lab, done: Result<()>) -> Result<()> {
    if done.is_err() {
        for node in &lab.nodes {
            eprintln!("--- {}\n{}", node.ip, node.log());
        }
    }
    done
}

async fn story(lab: &mut Lab, rounds: u32) -> Result<()> {
    alone_then_three(lab).await.context("one node, then three")?;
    balance(lab).await.context("balance")?;
    routes(lab).await.context("routes")?;
    let watcher = Watcher::start(VIP);
    // The last two are the easy ones.
    let few = rounds.div_ceil(2);
    let faults = [
        (Fault::Kill, rounds),
        (Fault::Hang, rounds),
        (Fault::Cut, rounds),
        (Fault::Crash, few),
        (Fault::PowerOff, few),
    ];
    for (fault, rounds) in faults {
        let (mut moved, mut gaps, mut disturbed) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..rounds {
            let measured = strike(lab, &watcher, fault).await;
            let [m, g, d] = measured.with_context(|| format!("{fault:?}, round {round}"))?;
            moved.push(m);
            gaps.push(g);
            disturbed.push(d);
        }
        println!(
            "vip: {fault:?}: moved after {}; nobody answered for {}; some were not for {}",
            summary(&mut moved),
            summary(&mut gaps),
            summary(&mut disturbed)
        );
        ensure(gaps.iter().all(|g| *g <= LONGEST), || format!("{fault:?} took too long"))?;
    }
    partial_cuts(lab, &watcher).await.context("some links cut")?;
    standing_still(lab, &watcher).await.context("an agent that waits for the kernel")?;
    drop(watcher);
    busy_server(lab).await.context("a server that works and does not answer")?;
    kept_connections(lab).await.context("connections through the holder")?;
    waiting_clients(lab).await.context("clients of a hanging server")?;
    frozen_agent(lab).await.context("a frozen agent")?;
    shrink(lab).await.context("one control plane left")
}

/// As a cluster grows: the first has the address from its boot on, without any election, and keeps
/// it when there is one.
async fn alone_then_three(lab: &mut Lab) -> Result<()> {
    let ips = lab.ips();
    let began = Instant::now();
    lab.nodes[0].start()?;
    lab.one_holder(Duration::from_secs(2)).await?;
    println!("vip: alone: held {:?} after the start", began.elapsed());
    sleep(Duration::from_millis(300)).await;
    ensure(lab.nodes[0].state()?.vip.is_none(), || "an election of nobody".to_owned())?;
    let watcher = Watcher::start(VIP);
    sleep(Duration::from_millis(100)).await;
    let began = Instant::now();
    lab.tell_peers(&ips[..1], &ips[..1])?;
    sleep(Duration::from_millis(800)).await;
    ensure(rules(lab, 0)?.is_empty(), || "rules for nobody".to_owned())?;
    lab.tell_peers(&ips, &ips)?;
    for node in &mut lab.nodes[1..] {
        node.start()?;
    }
    settled(lab, 3).await?;
    println!("vip: growing: nobody answered for {:?}", watcher.longest_gap(began));
    ensure(watcher.longest_gap(began) < Duration::from_secs(1), || "a gap while growing".to_owned())?;
    ensure(lab.holders() == [0], || format!("the address moved to {:?}", lab.holders()))
}

fn rules(lab: &Lab, node: usize) -> Result<String> {
    let tables = lab.nodes[node].enter(&["nft", "list", "ruleset"])?;
    Ok(tables.split_once("table ip manykube_vip").map(|(_, t)| t.to_owned()).unwrap_or_default())
}

/// So many API servers are ready, everywhere known, and fit to be moved to.
async fn settled(lab: &Lab, size: usize) -> Result<()> {
    let began = Instant::now();
    let known = |node: &crate::lab::Node| {
        let Some(vip) = node.state().ok().and_then(|s| s.vip) else { return false };
        vip.backends.len() == size && vip.health == Health::Ready && vip.held_by.is_some()
    };
    while !lab.nodes.iter().all(known) {
        ensure(began.elapsed() < Duration::from_secs(10), || "the nodes do not settle".to_owned())?;
        sleep(Duration::from_millis(10)).await;
    }
    sleep(Duration::from_millis(2300)).await;
    lab.one_holder(Duration::ZERO).await.map(drop)
}

async fn balance(lab: &Lab) -> Result<()> {
    let everybody: BTreeSet<Ipv4Addr> = lab.ips().into_iter().collect();
    let mut seen = BTreeSet::new();
    for _ in 0..12 {
        seen.insert(client::who(VIP).await?);
    }
    ensure(seen == everybody, || format!("the host reaches only {seen:?}"))?;
    let me = std::env::current_exe()?;
    for node in &lab.nodes {
        let lines = node.enter(&[&me.to_string_lossy(), "client", &VIP.to_string(), "12"])?;
        let seen: BTreeSet<Ipv4Addr> = lines.lines().map(str::parse).collect::<Result<_, _>>()?;
        ensure(seen == everybody, || format!("{} reaches only {seen:?}", node.ip))?;
    }
    println!("vip: balance: host and all nodes reach all three servers");
    Ok(())
}

async fn routes(lab: &Lab) -> Result<()> {
    let ips = lab.ips();
    let ours = |node: usize| lab.nodes[node].enter(&["ip", "route", "show", "proto", "109"]);
    let text = ours(0)?;
    ensure(text.contains("10.244.1.0/24 via 192.168.49.3 dev eth0"), || format!("routes: {text}"))?;
    ensure(text.contains("10.244.2.0/24 via 192.168.49.4 dev eth0"), || format!("routes: {text}"))?;
    ensure(text.lines().count() == 2, || format!("routes: {text}"))?;
    // One that is gone loses its route, and somebody else's route stays.
    lab.nodes[0].enter(&["ip", "route", "add", "10.99.0.0/24", "via", "192.168.49.9"])?;
    lab.tell_peers(&ips, &ips[..2])?;
    sleep(Duration::from_millis(500)).await;
    let text = ours(0)?;
    ensure(text.lines().count() == 1 && text.contains("10.244.1.0/24"), || format!("routes: {text}"))?;
    lab.nodes[0].enter(&["ip", "route", "del", "10.99.0.0/24", "via", "192.168.49.9"])?;
    lab.tell_peers(&ips, &ips)?;
    sleep(Duration::from_millis(500)).await;
    ensure(ours(0)?.lines().count() == 2, || "a route did not come back".to_owned())
}

fn summary(times: &mut [Duration]) -> String {
    times.sort();
    let all: Vec<u128> = times.iter().map(Duration::as_millis).collect();
    format!("p50 {} ms, max {} ms of {all:?}", all[all.len() / 2], all[all.len() - 1])
}

#[derive(Debug, Clone, Copy)]
enum Fault {
    /// All processes of the node.
    Kill,
    /// The API server stands still.
    Hang,
    /// The node's cable is pulled out of the bridge.
    Cut,
    /// The API server dies.
    Crash,
    PowerOff,
}

/// Strikes the holder and heals it again; when the address had moved, how long no client was served,
/// and how long not every one.
async fn strike(lab: &mut Lab, watcher: &Watcher, fault: Fault) -> Result<[Duration; 3]> {
    let holder = lab.one_holder(Duration::from_secs(1)).await?;
    let began = Instant::now();
    let node = &mut lab.nodes[holder];
    match fault {
        Fault::Kill => node.kill()?,
        Fault::Hang => node.signal_api(Signal::SIGSTOP)?,
        Fault::Cut => node.cut()?,
        Fault::Crash => node.kill_api()?,
        Fault::PowerOff => node.terminate()?,
    }
    let next = loop {
        let now = lab.one_holder(LONGEST).await.context("after the fault")?;
        if now != holder || began.elapsed() > LONGEST {
            break now;
        }
        sleep(Duration::from_millis(5)).await;
    };
    let moved = began.elapsed();
    sleep(Duration::from_millis(1500).saturating_sub(moved) + SHORT).await;
    let measured = [moved, watcher.longest_gap(began), watcher.disturbed(began)];
    ensure(next != holder, || "the address did not move".to_owned())?;
    let node = &mut lab.nodes[holder];
    match fault {
        Fault::Kill | Fault::PowerOff => node.start()?,
        Fault::Hang => node.signal_api(Signal::SIGCONT)?,
        Fault::Cut => node.plug()?,
        Fault::Crash => node.start_api()?,
    }
    settled(lab, 3).await.context("after the fault was mended")?;
    ensure(lab.holders() == [next], || format!("the address moved to {:?}", lab.holders()))?;
    Ok(measured)
}

/// Clients that wait for a server that hangs are told, though neither side sends anything.
async fn waiting_clients(lab: &mut Lab) -> Result<()> {
    let victim = (lab.one_holder(Duration::ZERO).await? + 1) % 3;
    let waiting = client::wait_forever(VIP, 9);
    sleep(Duration::from_millis(500)).await;
    lab.nodes[victim].signal_api(Signal::SIGSTOP)?;
    let began = Instant::now();
    sleep(Duration::from_millis(2500)).await;
    let mut told = Vec::new();
    for client in waiting {
        if client.is_finished() {
            told.push(timeout(Duration::from_secs(1), client).await??.saturating_duration_since(began));
        } else {
            client.abort();
        }
    }
    println!("vip: waiting clients of a hanging server were told after {told:?}");
    ensure(told.len() == 3, || format!("{} of 3 clients were told", told.len()))?;
    lab.nodes[victim].signal_api(Signal::SIGCONT)?;
    settled(lab, 3).await
}

/// With one link of the holder cut it stays; without any to another control plane it gives up, though the
/// host and its gateway are there.
async fn partial_cuts(lab: &mut Lab, watcher: &Watcher) -> Result<()> {
    let holder = lab.one_holder(Duration::ZERO).await?;
    let (one, other) = ((holder + 1) % 3, (holder + 2) % 3);
    let term = lab.nodes[holder].term()?;
    lab.cut_link(holder, one)?;
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(3) {
        ensure(lab.holders() == [holder], || format!("one link cut: {:?} hold it", lab.holders()))?;
        sleep(Duration::from_millis(50)).await;
    }
    ensure(lab.nodes[other].term()? == term, || "there was an election".to_owned())?;
    lab.cut_link(holder, other)?;
    let began = Instant::now();
    sleep(Duration::from_millis(700)).await;
    let next = lab.one_holder(LONGEST).await?;
    println!("vip: cut from both others: moved after {:?}", began.elapsed());
    ensure(next != holder, || "one without a majority holds the address".to_owned())?;
    while began.elapsed() < Duration::from_secs(5) {
        ensure(lab.holders() == [next], || format!("two links cut: {:?} hold it", lab.holders()))?;
        sleep(Duration::from_millis(50)).await;
    }
    ensure(watcher.longest_gap(began) <= LONGEST, || "clients waited too long".to_owned())?;
    lab.heal_links()?;
    settled(lab, 3).await?;
    ensure(lab.holders() == [next], || format!("healed: the address moved to {:?}", lab.holders()))
}

/// An agent that waits for the kernel, and links that come and go, change nothing.
async fn standing_still(lab: &mut Lab, watcher: &Watcher) -> Result<()> {
    let holder = lab.one_holder(Duration::ZERO).await?;
    let term = lab.nodes[holder].term()?;
    let began = Instant::now();
    lab.nodes.iter().try_for_each(|node| node.stall(5))?;
    let links = lab.links_come_and_go(150)?;
    println!("vip: {links} links came and went");
    sleep(Duration::from_secs(6).saturating_sub(began.elapsed())).await;
    settled(lab, 3).await?;
    let terms: Vec<u64> = lab.nodes.iter().map(|n| n.term()).collect::<Result<_>>()?;
    ensure(terms.iter().all(|t| *t == term), || format!("term {term} became {terms:?}"))?;
    ensure(lab.holders() == [holder], || format!("the address moved to {:?}", lab.holders()))?;
    ensure(watcher.longest_gap(began) < Duration::from_secs(1), || "clients noticed".to_owned())
}

/// The holder's API server is late, but uses the processor: the address stays, and its connections live.
async fn busy_server(lab: &mut Lab) -> Result<()> {
    let holder = lab.one_holder(Duration::ZERO).await?;
    let (ip, term) = (lab.nodes[holder].ip, lab.nodes[holder].term()?);
    let mut kept = client::Kept::open(VIP, 9).await?;
    client::keep_busy(ip).await?;
    let terms: Vec<u64> = lab.nodes.iter().map(|n| n.term()).collect::<Result<_>>()?;
    ensure(terms.iter().all(|t| *t == term), || format!("term {term} became {terms:?}"))?;
    println!("vip: a busy server kept the address");
    let (lived, of) = kept.ask_again(Ipv4Addr::UNSPECIFIED).await;
    ensure(lived == of, || format!("only {lived} of {of} connections lived on"))?;
    settled(lab, 3).await
}

/// The holder's API server hangs and the address moves: connections through it to other servers live on.
async fn kept_connections(lab: &mut Lab) -> Result<()> {
    let holder = lab.one_holder(Duration::ZERO).await?;
    let victim = lab.nodes[holder].ip;
    let mut kept = client::Kept::open(VIP, 9).await?;
    lab.nodes[holder].signal_api(Signal::SIGSTOP)?;
    let began = Instant::now();
    while lab.one_holder(LONGEST).await? == holder {
        ensure(began.elapsed() < LONGEST, || "the address did not move".to_owned())?;
        sleep(Duration::from_millis(20)).await;
    }
    sleep(Duration::from_millis(500)).await;
    let (lived, of) = kept.ask_again(victim).await;
    println!("vip: {lived} of {of} connections to other servers lived on");
    ensure(lived == of && of > 0, || format!("only {lived} of {of} lived on"))?;
    lab.nodes[holder].signal_api(Signal::SIGCONT)?;
    settled(lab, 3).await
}

/// An agent that stands still does not answer for the address any more.
async fn frozen_agent(lab: &mut Lab) -> Result<()> {
    let holder = lab.one_holder(Duration::ZERO).await?;
    lab.nodes[holder].signal_agent(Signal::SIGSTOP)?;
    let began = Instant::now();
    sleep(Duration::from_millis(1000)).await;
    let next = lab.one_holder(Duration::from_secs(5)).await?;
    println!("vip: frozen agent: another has the address after {:?}", began.elapsed());
    ensure(next != holder, || "nobody took over".to_owned())?;
    lab.nodes[holder].signal_agent(Signal::SIGCONT)?;
    settled(lab, 3).await?;
    ensure(lab.holders() == [next], || format!("the address moved to {:?}", lab.holders()))
}

/// Two control planes are removed, the holder among them.
async fn shrink(lab: &mut Lab) -> Result<()> {
    let holder = lab.one_holder(Duration::ZERO).await?;
    let last = (holder + 1) % 3;
    let ip = lab.nodes[last].ip;
    lab.tell_peers(&[ip], &[ip])?;
    sleep(Duration::from_millis(1500)).await;
    let next = lab.one_holder(Duration::ZERO).await?;
    ensure(next == last, || format!("{next} holds the address, not {last}"))?;
    for node in 0..3 {
        ensure(rules(lab, node)?.is_empty(), || format!("rules are left on {node}"))?;
    }
    let answered = client::who(VIP).await?;
    ensure(answered == ip, || format!("{answered} answered"))
}

/// As `node add` and `node delete` do it: the others are told, then the node comes or goes.
async fn come_and_go(lab: &mut Lab) -> Result<()> {
    let ips = lab.ips();
    lab.nodes[0].start()?;
    lab.one_holder(Duration::from_secs(2)).await?;
    let watcher = Watcher::start(VIP);
    let began = Instant::now();
    for size in 2..=ips.len() {
        lab.tell_peers(&ips[..size], &ips[..size])?;
        lab.nodes[size - 1].start()?;
        let all = || (0..size).all(|i| lab.nodes[i].state().is_ok_and(|s| knows(&s, size)));
        while !all() {
            ensure(began.elapsed() < Duration::from_secs(60), || format!("{size} do not settle"))?;
            sleep(Duration::from_millis(10)).await;
        }
        ensure(lab.holders() == [0], || format!("the address moved to {:?}", lab.holders()))?;
    }
    let mut left = ips.clone();
    for gone in [4, 0, 1, 2] {
        left.retain(|i| *i != ips[gone]);
        lab.tell_peers(&left, &left)?;
        sleep(Duration::from_secs(1)).await;
        let holder = lab.one_holder(Duration::ZERO).await?;
        ensure(holder != gone, || format!("{gone} has left and holds the address"))?;
        lab.nodes[gone].terminate()?;
        sleep(Duration::from_secs(2)).await;
    }
    println!(
        "vip: five came and four went: the longest time without an answer was {:?}",
        watcher.longest_gap(began)
    );
    ensure(watcher.longest_gap(began) < Duration::from_secs(1), || "a gap meanwhile".to_owned())
}

fn knows(state: &NodeState, size: usize) -> bool {
    state.vip.as_ref().is_some_and(|vip| vip.backends.len() == size && vip.held_by.is_some())
}
