//! A cluster of three control planes and two workers is stopped and started, and loses its power,
//! again and again: the same machines come back, and nothing that was written is lost.
//!
//! RESTART_ROUNDS says how often; `make endurance` does it five times.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use system_tests::{Footprint, Lab, Machine, Traffic, rounds};

const VIP: &str = "192.168.49.254";
const NODES: [&str; 5] = ["minikube", "minikube-m02", "minikube-m03", "minikube-m04", "minikube-m05"];

#[test]
fn the_same_nodes_come_back() {
    let lab = Lab::new();
    let before = Footprint::take(&lab);
    lab.manykube(&["start", "--nodes=5", "--control-planes=3", "--disk-size=4000mb"]).ok();
    lab.kubectl(&["label", "node", "minikube-m02", "minikube-m05", "test.example/colour=green"]).ok();
    lab.kubectl(&["taint", "node", "minikube-m03", "minikube-m04", "test.example/kept=yes:PreferNoSchedule"])
        .ok();
    let traffic = Traffic::start(&lab, &format!("{VIP}:8443"));
    let known = look(&lab);
    assert_eq!(known.keys().collect::<Vec<_>>(), NODES);

    for round in 1..=rounds("RESTART_ROUNDS", 1) {
        let stopped = lab.manykube(&["stop"]).ok().elapsed;
        assert!(Machine::all(&lab).is_empty(), "machines run after a stop");
        come_back(&lab, &traffic, &known, &format!("stop {round} ({:.1} s)", stopped.as_secs_f32()));
    }
    for round in 1..=rounds("RESTART_ROUNDS", 1) {
        power_loss(&lab);
        come_back(&lab, &traffic, &known, &format!("power loss {round}"));
    }
    println!("{} acknowledged writes, none lost", traffic.nothing_is_lost(&lab));
    lab.manykube(&["delete"]).ok();
    before.assert_nothing_left();
}

/// All of it at once, while clients write. The start that follows finds some of them dying.
fn power_loss(lab: &Lab) {
    let all = Machine::all(lab);
    assert_eq!(all.len(), NODES.len());
    all.iter().for_each(Machine::kill);
}

fn come_back(lab: &Lab, traffic: &Traffic, known: &BTreeMap<String, Seen>, after: &str) {
    let started = lab.manykube(&["start"]).ok();
    println!("after {after}: all Ready {:.1} s after the start", started.elapsed.as_secs_f32());
    assert_eq!(&look(lab), known, "after {after}");
    nobody_joined(lab);
    lab.nothing_to_do();
    traffic.calm(Duration::from_secs(1));
}

/// What is the same before and after.
#[derive(Debug, PartialEq)]
struct Seen {
    uid: String,
    address: String,
    pods: String,
    labels: Value,
    own_taints: Vec<Value>,
    /// Of the machine's disk.
    disk: u64,
    /// How much the commands said that are run once in a node's life, kubeadm's among them.
    prepared: u64,
}

/// Of all nodes that are Ready, at once: a start returns when they are.
fn look(lab: &Lab) -> BTreeMap<String, Seen> {
    let list = lab.kubectl(&["get", "nodes", "-o", "json"]).ok().json();
    let nodes = list["items"].as_array().cloned().unwrap_or_default();
    nodes.iter().filter(|n| is_ready(n)).map(|n| (text(&n["metadata"]["name"]), seen(lab, n))).collect()
}

fn is_ready(node: &Value) -> bool {
    let conditions = node["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|c| c["type"] == "Ready" && c["status"] == "True")
}

fn seen(lab: &Lab, node: &Value) -> Seen {
    let addresses = node["status"]["addresses"].as_array();
    let internal = addresses.into_iter().flatten().find(|a| a["type"] == "InternalIP");
    // The others are the controllers', who may be a little late to take them away.
    let taints = node["spec"]["taints"].as_array().into_iter().flatten();
    let disk = lab.home().join("machines").join(text(&node["metadata"]["name"])).join("var");
    let prepared = std::fs::metadata(disk.join("log/manykube/prepare.log"));
    Seen {
        uid: text(&node["metadata"]["uid"]),
        address: internal.map(|a| text(&a["address"])).unwrap_or_default(),
        pods: text(&node["spec"]["podCIDR"]),
        labels: node["metadata"]["labels"].clone(),
        own_taints: taints.filter(|t| text(&t["key"]).starts_with("test.example/")).cloned().collect(),
        disk: std::fs::metadata(disk).expect("the machine's disk").ino(),
        prepared: prepared.map_or(0, |log| log.len()),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The logs of this start and of the machines' agents since their boot tell of no kubeadm at all.
fn nobody_joined(lab: &Lab) {
    let mut logs = vec![lab.home().join("logs/lastStart.txt")];
    logs.extend(NODES.map(|n| lab.home().join("machines").join(n).join("var/log/manykube/agent.log")));
    for log in logs {
        let said = read(&log);
        let told = said.lines().find(|l| l.contains("kubeadm") || l.to_lowercase().contains("join"));
        assert_eq!(told, None, "in {}", log.display());
    }
}

fn read(log: &Path) -> String {
    std::fs::read_to_string(log).unwrap_or_else(|e| panic!("{}: {e}", log.display()))
}
