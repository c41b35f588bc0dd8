//! etcd's own word, by etcdctl in a control plane.

use std::path::PathBuf;

use serde_json::Value;

use crate::{Lab, Machine, Ran};

/// `words` of etcdctl, asked in this node of its own member.
pub fn etcdctl(lab: &Lab, node: &str, words: &str) -> Ran {
    let certs = "/var/lib/minikube/certs/etcd";
    let line = format!(
        "etcdctl --cacert {certs}/ca.crt --cert {certs}/healthcheck-client.crt --key {certs}/healthcheck-client.key \
         --endpoints https://127.0.0.1:2379 {words}"
    );
    lab.manykube(&["ssh", "-n", node, "--", &line])
}

/// Is the member of this node the leader?
#[track_caller]
pub fn leads(lab: &Lab, node: &str) -> bool {
    let status: Value = etcdctl(lab, node, "endpoint status -w json").ok().json();
    let status = &status[0]["Status"];
    assert!(status["leader"].is_u64(), "{status}");
    status["leader"] == status["header"]["member_id"]
}

/// Its data in this node, as the host has it.
pub fn data(lab: &Lab, node: &str) -> PathBuf {
    lab.home().join("machines").join(node).join("var/lib/minikube/etcd")
}

/// The node loses its power, and then this data, as when a disk is replaced.
#[track_caller]
pub fn lose_data(lab: &Lab, node: &str) {
    if let Some(machine) = Machine::find(lab, node) {
        machine.kill();
        machine.ends();
    }
    std::fs::remove_dir_all(data(lab, node)).expect("lose the data");
}
