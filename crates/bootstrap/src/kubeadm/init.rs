//! InitConfiguration: what is this node's own.

use model::{Cluster, Node};
use serde_json::{Value, json};

use crate::paths;

pub fn configuration(cluster: &Cluster, node: &Node) -> Value {
    json!({
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "InitConfiguration",
        "localAPIEndpoint": { "advertiseAddress": node.ip, "bindPort": cluster.api_port },
        "nodeRegistration": {
            "name": cluster.machine(node),
            "criSocket": paths::CRI_SOCKET,
            // Every node takes pods, as in minikube.
            "taints": [],
            "kubeletExtraArgs": kubelet_args(node),
            "imagePullPolicy": "IfNotPresent",
            // Not ours to fail on: cgroup v1 hosts, swap, a kernel without its configuration file.
            "ignorePreflightErrors": ["SystemVerification", "Swap", "NumCPU", "Mem"],
        },
        "patches": { "directory": paths::PATCHES },
    })
}

/// A control plane may hold the virtual address too: the kubelet must not take that for its own.
fn kubelet_args(node: &Node) -> Value {
    json!([{ "name": "node-ip", "value": node.ip }])
}
