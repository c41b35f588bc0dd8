//! The node's own addresses and routes, and the rule that lets pods reach beyond the cluster.

use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result};
use ipnet::Ipv4Net;
use model::node_spec::{LOG_DIR, NodeNetwork};
use netlink::Netlink;
use tokio::time::sleep;

use crate::commands;
use crate::reaper::Reaper;
use crate::state::Node;

const LINK: &str = "eth0";
const RULES: &str = "/run/manykube-pods.nft";

pub async fn up(node: &Rc<Node>, reaper: &Reaper) -> Result<()> {
    let net = Netlink::open()?;
    let spec = &node.spec.network;
    if let Some(lo) = net.link("lo").await? {
        net.up(lo.index).await?;
    }
    pod_rules(spec, reaper).await?;
    // The cable is plugged in from outside, usually while we mount; there is no hurry to give up.
    let link = loop {
        if let Some(link) = net.link(LINK).await? {
            break link;
        }
        sleep(Duration::from_millis(5)).await;
    };
    net.up(link.index).await?;
    net.add_address(link.index, spec.address).await?;
    if let Some(vip) = spec.vip {
        net.add_address(link.index, Ipv4Net::from(vip)).await?;
    }
    net.default_route(link.index, spec.gateway).await?;
    node.state.borrow_mut().network_ready = true;
    Ok(())
}

/// Pods have addresses that nobody outside the cluster knows: beyond it they borrow the node's.
async fn pod_rules(spec: &NodeNetwork, reaper: &Reaper) -> Result<()> {
    if spec.pods.is_none() {
        return Ok(());
    }
    let pods = spec.cluster_pods;
    let rules = format!(
        "table ip manykube {{}}\ndelete table ip manykube\ntable ip manykube {{\n  chain postrouting {{\n    \
         type nat hook postrouting priority srcnat; policy accept;\n    \
         oifname \"{LINK}\" ip saddr {pods} ip daddr != {pods} masquerade\n  }}\n}}\n"
    );
    fs_err::write(RULES, rules)?;
    let argv = ["nft", "-f", RULES].map(str::to_owned);
    commands::run(reaper, &argv, &format!("{LOG_DIR}/prepare.log")).await.context("set the pods' rules")
}
