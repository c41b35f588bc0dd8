//! KubeProxyConfiguration.

use model::Cluster;
use serde_json::{Value, json};

use crate::Options;

pub fn configuration(cluster: &Cluster, options: &Options) -> Value {
    // The host's table, which a node may not resize: 0 leaves it alone.
    let mut conntrack = json!({ "maxPerCore": 0, "min": 0 });
    if options.user_namespace {
        // Nor may it say there how long connections are remembered.
        conntrack["tcpEstablishedTimeout"] = "0s".into();
        conntrack["tcpCloseWaitTimeout"] = "0s".into();
    }
    json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": options.proxy_mode.as_str(),
        "clusterCIDR": cluster.network.pod_cidr,
        "conntrack": conntrack,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn what_is_the_hosts_is_left_alone() {
        let cluster = fixture::cluster(1, 0);
        let of = |user_namespace| configuration(&cluster, &Options { user_namespace, ..fixture::options() });
        assert_eq!(of(false)["conntrack"], json!({ "maxPerCore": 0, "min": 0 }));
        assert_eq!(of(true)["conntrack"]["tcpEstablishedTimeout"], "0s");
    }
}
