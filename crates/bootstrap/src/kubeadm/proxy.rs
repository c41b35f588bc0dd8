//! KubeProxyConfiguration.

use model::Cluster;
use serde_json::{Value, json};

use crate::ProxyMode;

pub fn configuration(cluster: &Cluster, mode: ProxyMode) -> Value {
    json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": mode.as_str(),
        "clusterCIDR": cluster.network.pod_cidr,
        // The host's table, which a node may not resize: 0 leaves it alone.
        "conntrack": { "maxPerCore": 0, "min": 0 },
    })
}
