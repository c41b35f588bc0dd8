//! The pod network of this node: a routed cable per pod, addresses from the node's own range.

use anyhow::Result;
use model::node_spec::NodeNetwork;
use serde_json::{Value, json};

const FILE: &str = "/etc/cni/net.d/10-manykube.conflist";

pub fn write(network: &NodeNetwork) -> Result<()> {
    let Some(config) = config(network) else { return Ok(()) };
    fs_err::create_dir_all("/etc/cni/net.d")?;
    fs_err::write(FILE, serde_json::to_vec_pretty(&config)?).map_err(Into::into)
}

fn config(network: &NodeNetwork) -> Option<Value> {
    let pods = network.pods?;
    Some(json!({
        "cniVersion": "1.0.0",
        "name": "manykube",
        "plugins": [
            {
                "type": "ptp",
                "ipMasq": false,
                "mtu": network.mtu,
                "ipam": {
                    "type": "host-local",
                    // Pods do not outlive a boot, so neither may the record of their addresses.
                    "dataDir": "/run/cni-ipam",
                    "routes": [{ "dst": "0.0.0.0/0" }],
                    "ranges": [[{ "subnet": pods }]],
                },
            },
            { "type": "portmap", "capabilities": { "portMappings": true } },
        ],
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(pods: Option<&str>) -> NodeNetwork {
        NodeNetwork {
            address: "192.168.49.2/24".parse().unwrap(),
            gateway: "192.168.49.1".parse().unwrap(),
            vip: None,
            pods: pods.map(|p| p.parse().unwrap()),
            cluster_pods: "10.244.0.0/16".parse().unwrap(),
            services: "10.96.0.0/12".parse().unwrap(),
            api: None,
            dns: vec![],
            mtu: 1500,
        }
    }

    #[test]
    fn a_node_gives_addresses_of_its_own_range() {
        let config = config(&network(Some("10.244.3.0/24"))).unwrap();
        assert_eq!(config["plugins"][0]["ipam"]["ranges"][0][0]["subnet"], "10.244.3.0/24");
        assert_eq!(super::config(&network(None)), None);
    }
}
