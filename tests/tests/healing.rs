//! A cluster of three control planes is damaged in every way that a host, a disk or a user can, and
//! `start` repairs it; where it cannot, it says so and what can be done.

use std::process::Command;
use std::time::Duration;

use system_tests::{Footprint, Lab, Machine, etcd, eventually, health};

const SOON: Duration = Duration::from_secs(60);
/// Longer than certificates live: those made with a clock set back by this have ended.
const LONG_AGO: &str = "100000000";

#[test]
fn start_repairs_what_can_be_repaired() {
    let lab = Lab::new();
    let before = Footprint::take(&lab);
    lab.manykube(&["start", "--ha"]).ok();
    lab.kubectl(&["create", "configmap", "kept", "--from-literal=key=value"]).ok();

    processes_rules_and_files(&lab);
    bridge(&lab);
    cable_and_node_object(&lab);
    data_of_one_member(&lab);
    other_names(&lab);
    expired(&lab);
    majority(&lab);

    let kept = lab.kubectl(&["get", "configmap", "kept", "-o", "jsonpath={.data.key}"]).ok();
    assert_eq!(kept.text(), "value");
    lab.manykube(&["delete"]).ok();
    before.assert_nothing_left();
}

/// One start for all of it.
#[track_caller]
fn repaired(lab: &Lab, what: &str) {
    let started = lab.manykube(&["start"]).ok();
    println!("{what}: repaired in {:.1} s", started.elapsed.as_secs_f32());
    health::check(lab);
}

fn processes_rules_and_files(lab: &Lab) {
    let machine = Machine::find(lab, "minikube-m02").expect("the machine runs");
    machine.kill();
    machine.ends();
    let tables = host(&["nft", "list", "tables"]);
    let rules =
        tables.lines().filter_map(|l| l.strip_prefix("table ip ")).find(|t| t.starts_with("manykube-"));
    let rules = rules.expect("the profile's rules").to_owned();
    host(&["nft", "delete", "table", "ip", &rules]);
    std::fs::remove_file(lab.kubeconfig()).expect("remove the kubeconfig");
    let config = lab.home().join("profiles/minikube/config.json");
    let whole = std::fs::read(&config).expect("config.json");
    std::fs::write(&config, &whole[..whole.len() / 2]).expect("half of it");
    lab.manykube(&["status"]).exit(38);

    repaired(lab, "a dead machine, the host's rules, the kubeconfig, half a config.json");
    assert!(host(&["nft", "list", "tables"]).contains(&rules));
    assert_eq!(std::fs::read(&config).expect("config.json"), whole);
}

fn bridge(lab: &Lab) {
    let links = host(&["ip", "-o", "link", "show", "type", "bridge"]);
    let bridge =
        links.lines().filter_map(|l| l.split(": ").nth(1)).find(|n| n.starts_with("mk-")).expect("a bridge");
    host(&["ip", "link", "delete", bridge]);
    repaired(lab, "the bridge");
}

fn cable_and_node_object(lab: &Lab) {
    let labels =
        |node: &str| lab.kubectl(&["get", "node", node, "-o", "jsonpath={.metadata.labels}"]).ok().stdout;
    let before: serde_json::Value = serde_json::from_str(&labels("minikube-m02")).expect("labels");
    lab.kubectl(&["delete", "node", "minikube-m02"]).ok();
    Machine::find(lab, "minikube-m03").expect("the machine runs").cable().remove();
    repaired(lab, "a deleted Node, a cable");
    let after: serde_json::Value = serde_json::from_str(&labels("minikube-m02")).expect("labels");
    let names = |labels: &serde_json::Value| {
        labels.as_object().map(|o| o.keys().cloned().collect::<Vec<_>>()).unwrap_or_default()
    };
    assert_eq!(names(&before), names(&after), "labels of a node that was deleted");
}

fn data_of_one_member(lab: &Lab) {
    etcd::lose_data(lab, "minikube-m02");
    repaired(lab, "the data of one member");
}

fn other_names(lab: &Lab) {
    lab.manykube(&["start", "--apiserver-names=api.example"]).ok();
    for ip in ["192.168.49.2", "192.168.49.3", "192.168.49.4"] {
        let server = format!("--server=https://{ip}:8443");
        eventually("the API server answers to its new name", SOON, || {
            let ran = lab.kubectl(&[&server, "--tls-server-name=api.example", "get", "--raw", "/livez"]);
            if ran.code == 0 { Ok(()) } else { Err(ran.stderr) }
        });
    }
    lab.nothing_to_do();
}

/// All of them, in the profile and in the nodes.
fn expired(lab: &Lab) {
    lab.manykube(&["stop"]).ok();
    let profile = lab.home().join("profiles/minikube");
    for leaf in ["client.crt", "apiserver.crt", "proxy-client.crt", "pki/admin.crt", "pki/scheduler.crt"] {
        std::fs::remove_file(profile.join(leaf)).unwrap_or_else(|e| panic!("{leaf}: {e}"));
    }
    let nodes = std::fs::read_dir(profile.join("pki/nodes")).expect("the nodes' certificates").flatten();
    nodes.for_each(|node| std::fs::remove_dir_all(node.path()).expect("a node's certificates"));
    // Makes them as of long ago, gives them to the nodes, and cannot go on with them.
    let mut start = lab.command(&["start", "--wait-timeout=8s"]);
    let output = start.env("MANYKUBE_CLOCK_BACK", LONG_AGO).output().expect("run manykube");
    assert_eq!(output.status.code(), Some(80), "{}", String::from_utf8_lossy(&output.stderr));
    let status = lab.manykube(&["status"]);
    assert!(status.code != 0 && status.stdout.contains("apiserver: Stopped"), "{status:?}");

    let started = lab.manykube(&["start"]).ok();
    println!("expired certificates: repaired in {:.1} s", started.elapsed.as_secs_f32());
    assert!((started.stdout + &started.stderr).contains("expired"), "does not say what was wrong");
    health::check(lab);
}

fn majority(lab: &Lab) {
    etcd::lose_data(lab, "minikube");
    etcd::lose_data(lab, "minikube-m03");
    let refused = lab.manykube(&["start"]).exit(80);
    println!("a lost majority: said after {:.1} s", refused.elapsed.as_secs_f32());
    assert!(refused.stderr.contains("only minikube-m02 still has its data"), "{}", refused.stderr);
    assert!(refused.stderr.contains("--recover-from"), "{}", refused.stderr);
    lab.manykube(&["start", "--recover-from", "minikube-m03"]).exit(85);
    let recovered = lab.manykube(&["start", "--recover-from"]).ok();
    println!("a lost majority: recovered in {:.1} s", recovered.elapsed.as_secs_f32());
    health::check(lab);
    lab.manykube(&["start", "--recover-from"]).exit(14);
}

fn host(argv: &[&str]) -> String {
    let output = Command::new(argv[0]).args(&argv[1..]).output().expect("run a tool of the host");
    assert!(output.status.success(), "{argv:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
