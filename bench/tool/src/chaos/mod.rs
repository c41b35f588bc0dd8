//! Faults at random, for minutes, while clients write and an application serves: afterwards all that was
//! acknowledged is there, and all is whole. The seed is printed; the same one draws the same faults, as far
//! as the cluster is as quick to recover.

mod application;
mod dice;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use system_tests::traffic::KINDS;
use system_tests::{Footprint, Lab, Traffic, eventually};

use application::Application;
use dice::{Act, Dice, Health};

const PLANES: usize = 3;
const MACHINES: [&str; 5] = ["minikube", "minikube-m02", "minikube-m03", "minikube-m04", "minikube-m05"];
const VIP: &str = "192.168.49.254:8443";
/// After the last fault: machines boot, pods move.
const RECOVERY: Duration = Duration::from_secs(240);

pub fn run() -> Result<()> {
    let seed = number("CHAOS_SEED")?.unwrap_or_else(|| fastrand::u64(..1_000_000));
    let minutes = number("CHAOS_MINUTES")?.unwrap_or(10);
    println!("chaos: {minutes} minutes, seed {seed} (CHAOS_SEED={seed} draws the same again)");
    let lab = Lab::new();
    let before = Footprint::take(&lab);
    lab.manykube(&["start", "--nodes=5", "--control-planes=3", "--node-grace=20s"]).ok();
    let application = Application::start(&lab);
    let traffic = Traffic::start(&lab, VIP);

    let began = Instant::now();
    let end = began + Duration::from_secs(minutes * 60);
    let mut dice = Dice::new(seed, PLANES);
    let mut struck: BTreeMap<String, usize> = BTreeMap::new();
    let mut last = began;
    while Instant::now() < end {
        match dice.roll(&health(&lab)) {
            Act::Wait(time) => std::thread::sleep(time),
            Act::Strike(fault) => {
                let words: Vec<&str> = fault.words.iter().map(String::as_str).collect();
                let ran = lab.manykube(&[&["fault"], words.as_slice()].concat());
                // What the one before did to clients is known by now.
                let gaps = KINDS.map(|kind| traffic.disturbance(kind, last).gap.as_millis());
                last = Instant::now();
                let well = if ran.code == 0 { "" } else { ran.stderr.trim() };
                println!(
                    "        longest gaps since: {} ms read, {} ms write, {} ms kept",
                    gaps[0], gaps[1], gaps[2]
                );
                println!("{:6.1} s  {} {well}", began.elapsed().as_secs_f64(), words.join(" "));
                // A program that is about to be started again cannot be killed.
                if ran.code == 0 {
                    *struck.entry(fault.kind).or_default() += 1;
                }
            }
        }
    }

    lab.manykube(&["fault", "heal"]).ok();
    lab.manykube(&["start", "--wait=all"]).ok();
    let mending = Instant::now();
    eventually("the cluster is HAppy", RECOVERY, || happy(&lab));
    eventually("no pod is stuck", RECOVERY, || nobody_is_stuck(&lab));
    traffic.calm(Duration::from_secs(3));
    application.calm(Duration::from_secs(3));
    println!("whole again {:.1} s after the start", mending.elapsed().as_secs_f64());

    let total: usize = struck.values().sum();
    let kinds: Vec<String> = struck.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
    println!("faults injected: {total} ({})", kinds.join(", "));
    for kind in KINDS {
        let seen = traffic.disturbance(kind, began);
        println!(
            "API, {kind:?}: longest unavailability {} ms, {} requests failed",
            seen.gap.as_millis(),
            seen.failed
        );
    }
    println!("{}", application.summary());
    let acknowledged = traffic.nothing_is_lost(&lab);
    println!("writes acknowledged: {acknowledged}, lost: 0");
    drop(application);
    lab.manykube(&["delete"]).ok();
    before.assert_nothing_left();
    println!("left behind after delete: 0");
    Ok(())
}

fn number(variable: &str) -> Result<Option<u64>> {
    let text = std::env::var(variable).ok().filter(|text| !text.is_empty());
    text.map(|text| text.parse().with_context(|| format!("{variable}={text} is no number"))).transpose()
}

/// Which nodes are as they should be, by `status`.
fn health(lab: &Lab) -> Vec<Health> {
    let shown = lab.manykube(&["status", "-o", "json"]).json();
    let nodes = shown.as_array().cloned().unwrap_or_default();
    MACHINES
        .iter()
        .map(|machine| {
            let node = nodes.iter().find(|n| n["Name"] == *machine).cloned().unwrap_or_default();
            let runs = |key: &str| node[key] == "Running" || node[key] == "Irrelevant";
            let well = runs("Host") && runs("Kubelet") && runs("APIServer") && node["Faults"].is_null();
            Health { machine: (*machine).to_owned(), well }
        })
        .collect()
}

fn happy(lab: &Lab) -> Result<(), String> {
    let shown = lab.manykube(&["status", "-o", "json", "-l", "cluster"]).json();
    let word = shown["StatusName"].as_str().unwrap_or_default();
    if word == "HAppy" { Ok(()) } else { Err(format!("it is {word:?}")) }
}

fn nobody_is_stuck(lab: &Lab) -> Result<(), String> {
    let ran = lab.kubectl(&["get", "pods", "-A", "-o", "json"]);
    if ran.code != 0 {
        return Err(ran.stderr);
    }
    let list = ran.json();
    let pods = list["items"].as_array().cloned().unwrap_or_default();
    let stuck = |pod: &&serde_json::Value| {
        let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let ready = conditions.iter().any(|c| c["type"] == "Ready" && c["status"] == "True");
        !pod["metadata"]["deletionTimestamp"].is_null() || !ready
    };
    let names: Vec<String> = pods
        .iter()
        .filter(stuck)
        .map(|pod| format!("{} ({})", pod["metadata"]["name"], pod["status"]["phase"]))
        .collect();
    if names.is_empty() { Ok(()) } else { Err(names.join(", ")) }
}
