//! The pod network across nodes: each node's pods are behind that node (flannel calls it host-gw).
//!
//! A node's range follows from its address, so the list of addresses is all there is to know.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result};
use model::address;
use model::node_spec::{NodeNetwork, Peers, PodRoute};
use netlink::{Netlink, Owner, Via};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::state::Node;

/// "m". Routes of others are none of our business, and ours are known again after a restart.
const OURS: Owner = Owner(0x6d);
/// A link that went down and up has lost its routes.
const LOOK: Duration = Duration::from_secs(10);
const AGAIN: Duration = Duration::from_secs(1);

/// Forever.
pub async fn keep(node: Rc<Node>, link: String, mut peers: watch::Receiver<Peers>) {
    if node.spec.network.pods.is_none() {
        return;
    }
    loop {
        let nodes = peers.borrow_and_update().nodes.clone();
        let wanted = wanted(&node.spec.network, &nodes);
        let pause = match reconcile(&link, &wanted).await {
            Ok(()) => {
                node.state.borrow_mut().routes = wanted.into_iter().collect();
                LOOK
            }
            Err(e) => {
                tracing::warn!("{e:#}");
                AGAIN
            }
        };
        if let Ok(Err(_)) = timeout(pause, peers.changed()).await {
            return;
        }
    }
}

fn wanted(network: &NodeNetwork, nodes: &[Ipv4Addr]) -> Vec<PodRoute> {
    let (me, subnet) = (network.address.addr(), network.address.trunc());
    let others: BTreeSet<Ipv4Addr> =
        nodes.iter().copied().filter(|ip| *ip != me && subnet.contains(ip)).collect();
    others
        .into_iter()
        .map(|ip| PodRoute { pods: address::pod_cidr(subnet, network.cluster_pods, ip), via: ip })
        .collect()
}

async fn reconcile(link: &str, wanted: &[PodRoute]) -> Result<()> {
    let net = Netlink::open()?;
    let link = net.link(link).await?.with_context(|| format!("there is no {link}"))?.index;
    let wanted: BTreeSet<Via> = wanted.iter().map(|r| Via { net: r.pods, gateway: r.via, link }).collect();
    let there: BTreeSet<Via> = net.routes_of(OURS).await?.into_iter().collect();
    for gone in there.difference(&wanted) {
        net.remove_route(OURS, *gone).await?;
        tracing::info!("no more route to {} by {}", gone.net, gone.gateway);
    }
    for new in wanted.difference(&there) {
        net.add_route(OURS, *new).await?;
        tracing::info!("route to {} by {}", new.net, new.gateway);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_other_node_has_its_pods_behind_it() {
        let network = NodeNetwork {
            api: None,
            address: "192.168.49.3/24".parse().unwrap(),
            gateway: "192.168.49.1".parse().unwrap(),
            vip: None,
            pods: Some("10.244.1.0/24".parse().unwrap()),
            cluster_pods: "10.244.0.0/16".parse().unwrap(),
            services: "10.96.0.0/12".parse().unwrap(),
            dns: vec![],
            mtu: 1500,
        };
        let nodes =
            ["192.168.49.4", "192.168.49.3", "192.168.49.2", "10.9.9.9"].map(|ip| ip.parse().unwrap());
        let routes: Vec<String> =
            wanted(&network, &nodes).iter().map(|r| format!("{} via {}", r.pods, r.via)).collect();
        assert_eq!(routes, ["10.244.0.0/24 via 192.168.49.2", "10.244.2.0/24 via 192.168.49.4"]);
    }
}
