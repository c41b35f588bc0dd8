//! kube-vip as the holder of the virtual address: a static pod on each control plane, as minikube
//! has it. Its election is a lease in the API, its voice is ARP.

use anyhow::Result;
use model::node_spec::NodeFile;
use model::{Cluster, Node, VipBy};
use serde_json::{Value, json};

use crate::{paths, yaml};

const NAME: &str = "kube-vip";
/// The link of every node.
const LINK: &str = "eth0";
/// Where kube-vip looks for its credentials.
const CREDENTIALS: &str = "/etc/kubernetes/admin.conf";

/// The manifest, when this node is to have one.
pub fn file(cluster: &Cluster, node: &Node, joins: bool) -> Result<Option<NodeFile>> {
    let VipBy::KubeVip { image } = &cluster.vip_by else { return Ok(None) };
    if !node.control_plane {
        return Ok(None);
    }
    // What admin.conf may do is granted by kubeadm's last steps, and those speak to the virtual
    // address: the first control plane takes it with credentials that need no grant.
    let founder = !joins && cluster.primary().is_some_and(|p| p.name == node.name);
    let credentials = if founder { "super-admin.conf" } else { "admin.conf" };
    let text = yaml::to_string(&pod(cluster, image, credentials))?;
    Ok(Some(NodeFile::new(format!("{}/{NAME}.yaml", paths::MANIFESTS), 0o600, text)))
}

fn pod(cluster: &Cluster, image: &str, credentials: &str) -> Value {
    let address = cluster.vip().to_string();
    let port = cluster.api_port.to_string();
    let settings = [
        ("vip_arp", "true"),
        ("port", &port),
        ("vip_interface", LINK),
        ("vip_subnet", "32"),
        // The name of the same until v0.9; newer ones pass it by.
        ("vip_cidr", "32"),
        ("dns_mode", "first"),
        ("cp_enable", "true"),
        ("cp_namespace", "kube-system"),
        ("vip_leaderelection", "true"),
        ("vip_leasename", "plndr-cp-lock"),
        ("vip_leaseduration", "5"),
        ("vip_renewdeadline", "3"),
        ("vip_retryperiod", "1"),
        ("address", &address),
        ("prometheus_server", ":2112"),
    ];
    let mut env: Vec<Value> =
        settings.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
    let own_name = json!({ "fieldRef": { "fieldPath": "spec.nodeName" } });
    env.push(json!({ "name": "vip_nodename", "valueFrom": own_name }));
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": NAME, "namespace": "kube-system" },
        "spec": {
            "hostNetwork": true,
            // As kubeadm's own static pods: a node under pressure evicts these last.
            "priority": 2_000_001_000,
            "priorityClassName": "system-node-critical",
            // kube-vip asks the API server of its own node, by this name.
            "hostAliases": [{ "ip": "127.0.0.1", "hostnames": ["kubernetes"] }],
            "containers": [{
                "name": NAME,
                "image": image,
                "imagePullPolicy": "IfNotPresent",
                "args": ["manager"],
                "env": env,
                "securityContext": { "capabilities": { "add": ["NET_ADMIN", "NET_RAW"], "drop": ["ALL"] } },
                "volumeMounts": [{ "name": "kubeconfig", "mountPath": CREDENTIALS }],
            }],
            "volumes": [{
                "name": "kubeconfig",
                "hostPath": { "path": format!("{}/{credentials}", paths::KUBERNETES), "type": "File" },
            }],
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn text(node: usize, joins: bool) -> Option<String> {
        let mut cluster = fixture::cluster(3, 1);
        cluster.vip_by = VipBy::KubeVip { image: "registry.example/kube-vip:v1.0.3".into() };
        let file = file(&cluster, &cluster.nodes[node], joins).unwrap()?;
        assert_eq!(file.path, "/etc/kubernetes/manifests/kube-vip.yaml");
        Some(String::from_utf8(file.data).unwrap())
    }

    #[test]
    fn the_first_control_plane() {
        insta::assert_snapshot!(text(0, false).unwrap());
    }

    #[test]
    fn only_who_founds_the_cluster_needs_no_grant() {
        let founder = text(0, false).unwrap();
        assert!(founder.contains("/etc/kubernetes/super-admin.conf"));
        for (node, joins) in [(1, false), (2, true), (0, true)] {
            assert_eq!(text(node, joins).unwrap(), founder.replace("super-admin.conf", "admin.conf"));
        }
    }

    #[test]
    fn workers_and_our_own_election_have_none() {
        assert_eq!(text(3, false), None);
        let cluster = fixture::cluster(3, 0);
        assert_eq!(file(&cluster, &cluster.nodes[0], false).unwrap(), None);
    }
}
