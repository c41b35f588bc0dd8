//! KubeletConfiguration, the same on every node.

use anyhow::Result;
use model::node_spec::NodeFile;
use model::{Cluster, Node};
use serde_json::{Value, json};

use super::own;
use crate::pki::sans::service_ip;
use crate::{Options, paths, yaml};

/// kubeadm uploads this for nodes that join later, so no file may be named in it that only our
/// own nodes have, save resolvConf. The serving certificate is at the kubelet's default place.
pub fn configuration(cluster: &Cluster, options: &Options) -> Value {
    let mut configuration = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": { "enabled": false },
            "webhook": { "enabled": true },
            "x509": { "clientCAFile": format!("{}/ca.crt", paths::CERTS) },
        },
        "authorization": { "mode": "Webhook" },
        "cgroupDriver": "cgroupfs",
        "clusterDNS": [service_ip(cluster.network.service_cidr, 10)],
        "clusterDomain": cluster.network.dns_domain,
        "containerRuntimeEndpoint": paths::CRI_SOCKET,
        // The disk is the host's: what fills it is not this node's to evict pods for.
        "evictionHard": {
            "imagefs.available": "0%",
            "imagefs.inodesFree": "0%",
            "nodefs.available": "0%",
            "nodefs.inodesFree": "0%",
        },
        "failSwapOn": false,
        "healthzBindAddress": "127.0.0.1",
        "healthzPort": 10248,
        // 100 switches it off: the images of the node image cannot be pulled again without a network.
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "protectKernelDefaults": false,
        "registryPullQPS": 0,
        "resolvConf": paths::RESOLV_CONF,
        "rotateCertificates": true,
        // What a pod does not say is the runtime's profile, not none at all.
        "seccompDefault": true,
        "serializeImagePulls": false,
        "staticPodPath": paths::MANIFESTS,
        // How soon the API hears of static pods that started before it did (default 1m).
        "syncFrequency": "10s",
    });
    if options.cgroup_v1 {
        configuration["failCgroupV1"] = false.into();
    }
    if options.user_namespace {
        configuration["featureGates"] = json!({ "KubeletInUserNamespace": true });
    }
    configuration
}

/// With what a node has of its own.
pub fn of_node(cluster: &Cluster, node: &Node, options: &Options) -> Value {
    let mut configuration = configuration(cluster, options);
    if cluster.node_disk_mib(node).is_some() {
        // Kubernetes' own thresholds: this disk is the node's.
        for (signal, least) in [("nodefs.available", "10%"), ("nodefs.inodesFree", "5%")] {
            configuration["evictionHard"][signal] = least.into();
        }
    }
    own::kubelet(&mut configuration, &cluster.config_of(node));
    configuration
}

/// What kubeadm writes on a node that joins.
pub fn worker_files(cluster: &Cluster, node: &Node, options: &Options) -> Result<Vec<NodeFile>> {
    let flags = format!("KUBELET_KUBEADM_ARGS=\"--node-ip={}\"\n", node.ip);
    let mut configuration = of_node(cluster, node, options);
    let taints = own::taints(&cluster.config_of(node).taints);
    if taints.as_array().is_some_and(|t| !t.is_empty()) {
        // From its first moment on: no pod may come before the taint does.
        configuration["registerWithTaints"] = taints;
    }
    let instance = json!({ "containerRuntimeEndpoint": paths::CRI_SOCKET });
    let file = |name: &str, text: String| NodeFile::new(format!("{}/{name}", paths::KUBELET), 0o644, text);
    Ok(vec![
        file("config.yaml", yaml::to_string(&configuration)?),
        file("instance-config.yaml", yaml::to_string(&instance)?),
        file("kubeadm-flags.env", flags),
        no_manifests(),
    ])
}

/// The kubelet passes hidden files by, and complains for ever where the directory is missing.
pub fn no_manifests() -> NodeFile {
    NodeFile::new(format!("{}/.keep", paths::MANIFESTS), 0o644, "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn cgroup_v1_is_spoken_of_only_where_it_is() {
        let cluster = fixture::cluster(1, 0);
        let of = |cgroup_v1| configuration(&cluster, &Options { cgroup_v1, ..fixture::options() });
        assert_eq!(of(true)["failCgroupV1"], false);
        assert_eq!(of(false).get("failCgroupV1"), None);
    }

    #[test]
    fn a_user_namespace_is_spoken_of_only_there() {
        let cluster = fixture::cluster(1, 0);
        let of = |user_namespace| configuration(&cluster, &Options { user_namespace, ..fixture::options() });
        assert_eq!(of(true)["featureGates"]["KubeletInUserNamespace"], true);
        assert_eq!(of(false).get("featureGates"), None);
    }
}
