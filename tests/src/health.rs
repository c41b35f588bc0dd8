//! Is a cluster as it should be, after whatever happened to it? By kubectl, etcdctl and the disk.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::etcd::etcdctl;
use crate::{Lab, eventually};

/// All nodes of the configuration are Ready and nobody else is there, etcd has a voter for each control
/// plane, the API keeps what it is given, there is nothing left to do and nothing lies about.
#[track_caller]
pub fn check(lab: &Lab) {
    lab.manykube(&["status"]).ok();
    lab.nothing_to_do();
    let nodes = configured(lab);
    let in_api = lab.kubectl(&["get", "nodes", "-o", "json"]).ok().json();
    let in_api = in_api["items"].as_array().cloned().unwrap_or_default();
    let ready: BTreeSet<String> = in_api.iter().filter(|n| is_ready(n)).map(name).collect();
    assert_eq!(ready, nodes.iter().map(|(machine, _)| machine.clone()).collect(), "Ready nodes");
    assert_eq!(in_api.len(), nodes.len(), "nodes in the API");
    members(lab, &nodes);
    keeps_what_it_is_given(lab);
    nothing_lies_about(lab);
}

/// Machine, and whether it is a control plane.
pub fn configured(lab: &Lab) -> Vec<(String, bool)> {
    let text = std::fs::read(lab.home().join("profiles/minikube/config.json")).expect("config.json");
    let config: Value = serde_json::from_slice(&text).expect("config.json is JSON");
    let nodes = config["Nodes"].as_array().cloned().unwrap_or_default();
    let machine = |n: &Value| match n["Name"].as_str().unwrap_or_default() {
        "" => "minikube".to_owned(),
        name => format!("minikube-{name}"),
    };
    nodes.iter().map(|n| (machine(n), n["ControlPlane"] == true)).collect()
}

#[track_caller]
fn members(lab: &Lab, nodes: &[(String, bool)]) {
    let planes: BTreeSet<String> = nodes.iter().filter(|(_, plane)| *plane).map(|(m, _)| m.clone()).collect();
    let first = planes.first().cloned().expect("a control plane");
    eventually("the members of etcd are the control planes", Duration::from_secs(10), || {
        let answer = etcdctl(lab, &first, "member list -w json");
        if answer.code != 0 {
            return Err(answer.stderr);
        }
        let list = answer.json();
        let list = list["members"].as_array().cloned().unwrap_or_default();
        let voters = list.iter().filter(|m| m["isLearner"] != true);
        let voters: BTreeSet<String> =
            voters.map(|m| m["name"].as_str().unwrap_or_default().to_owned()).collect();
        if voters == planes && list.len() == planes.len() { Ok(()) } else { Err(format!("{list:?}")) }
    });
}

fn name(node: &Value) -> String {
    node["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

fn is_ready(node: &Value) -> bool {
    let conditions = node["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|c| c["type"] == "Ready" && c["status"] == "True")
}

#[track_caller]
fn keeps_what_it_is_given(lab: &Lab) {
    // On a busy machine the virtual address may move just now, and with it the connection goes.
    eventually("a write", Duration::from_secs(20), || {
        let ran = lab.kubectl(&["create", "configmap", "health", "--from-literal=key=value"]);
        if ran.code == 0 || ran.stderr.contains("AlreadyExists") { Ok(()) } else { Err(ran.stderr) }
    });
    let read = lab.kubectl(&["get", "configmap", "health", "-o", "jsonpath={.data.key}"]).ok();
    assert_eq!(read.text(), "value");
    lab.kubectl(&["delete", "configmap", "health"]).ok();
}

/// Halves of files and directories, and locks that nobody holds.
#[track_caller]
pub fn nothing_lies_about(lab: &Lab) {
    let mut found = Vec::new();
    let profile = lab.home().join("profiles/minikube");
    let places = [lab.home(), lab.home().join("config"), lab.home().join("bin"), lab.home().join("networks")];
    let kubeconfig = lab.kubeconfig();
    let around = kubeconfig.parent().expect("a directory");
    for dir in places.iter().map(|p| p.as_path()).chain([profile.as_path(), around]) {
        found.extend(
            entries(dir).into_iter().filter(|n| is_half(n)).map(|n| format!("{}/{n}", dir.display())),
        );
    }
    let notes = entries(&profile.join("membership"));
    found.extend(notes.into_iter().map(|n| format!("membership/{n}")));
    // A machine that is being made or removed.
    let machines = entries(&lab.home().join("machines"));
    found.extend(machines.into_iter().filter(|n| n.starts_with('.')).map(|n| format!("machines/{n}")));
    for left in [profile.join("adding.json"), profile.join("changing.json"), around.join("kubeconfig.lock")] {
        found.extend(left.exists().then(|| left.display().to_string()));
    }
    assert!(found.is_empty(), "left lying about: {found:?}");
}

fn is_half(name: &str) -> bool {
    name.starts_with(".tmp") || name.ends_with(".tmp") || name.ends_with(".new")
}

fn entries(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter_map(|e| e.file_name().into_string().ok()).collect()
}
