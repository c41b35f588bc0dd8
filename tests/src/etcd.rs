//! etcd's own word, by etcdctl in a control plane.

use serde_json::Value;

use crate::{Lab, Ran};

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
