//! What happens to a holder, and how long clients notice it.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use model::node_spec::Health;
use nix::sys::signal::Signal;
use tokio::task::LocalSet;
use tokio::time::{sleep, timeout};

use crate::client::{self, SHORT, Watcher};
use crate::ensure;
use crate::lab::{Lab, VIP};

/// Of the aims: failover p50 ≤ 1 s, p99 ≤ 3 s.
const LONGEST: Duration = Duration::from_secs(3);

pub async fn all(rounds: u32) -> Result<()> {
    let mut lab = Lab::new(3)?;
    let done = LocalSet::new().run_until(story(&mut lab, rounds)).await;
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
    drop(watcher);
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

/// The kernel takes the address from an agent that stands still.
async fn frozen_agent(lab: &mut Lab) -> Result<()> {
    let holder = lab.one_holder(Duration::ZERO).await?;
    lab.nodes[holder].signal_agent(Signal::SIGSTOP)?;
    let began = Instant::now();
    sleep(Duration::from_millis(1000)).await;
    let next = lab.one_holder(Duration::from_secs(5)).await?;
    println!("vip: frozen agent: its kernel gave the address up after {:?}", began.elapsed());
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
