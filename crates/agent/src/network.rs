//! The node's own addresses and routes, and the rule that lets pods reach beyond the cluster.

use std::net::SocketAddrV4;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result};
use ipnet::Ipv4Net;
use model::node_spec::{EARLY_API, NodeNetwork};
use netlink::Netlink;
use tokio::time::sleep;

use crate::reaper::Reaper;
use crate::state::Node;
use crate::vip::OWN_API_MARK;
use crate::{commands, packets, sysctl};

pub const LINK: &str = "eth0";

/// `elected`: who has the virtual address is not ours to say.
pub async fn up(node: &Rc<Node>, reaper: &Reaper, elected: bool, early: Option<SocketAddrV4>) -> Result<()> {
    let net = Netlink::open()?;
    let spec = &node.spec.network;
    if let Some(lo) = net.link("lo").await? {
        net.up(lo.index).await?;
    }
    pod_rules(spec, reaper, early).await?;
    // The cable is plugged in from outside, usually while we mount; there is no hurry to give up.
    let link = loop {
        if let Some(link) = net.link(LINK).await? {
            break link;
        }
        sleep(Duration::from_millis(5)).await;
    };
    sysctl::apply_to_link(LINK);
    // The other nodes know this one by it; an engine may have chosen another.
    let mac = model::address::mac(spec.address.addr());
    if net.mac(LINK).await? != mac {
        net.set_mac(link.index, mac).await?;
    }
    packets::at_boot(reaper).await?;
    net.up(link.index).await?;
    net.add_address(link.index, spec.address).await?;
    if let Some(vip) = spec.vip
        && !elected
    {
        net.add_address(link.index, Ipv4Net::from(vip)).await?;
    }
    net.default_route(link.index, spec.gateway).await?;
    node.state.borrow_mut().network_ready = true;
    Ok(())
}

/// Pods have addresses that nobody outside the cluster knows: beyond it they borrow the node's. Where
/// the pod network is not ours, that is for whoever makes it.
///
/// The API's service works before kube-proxy does, so that pods which start with it (DNS, storage)
/// need not fail first. kube-proxy's own rules come earlier in the same hooks and decide once they
/// are there: a connection is only ever redirected once.
async fn pod_rules(spec: &NodeNetwork, reaper: &Reaper, early: Option<SocketAddrV4>) -> Result<()> {
    let argv = ["nft", "-f", "-"].map(str::to_owned);
    let text = rules(spec) + &early_api(spec, early);
    commands::feed(reaper, &argv, text.as_bytes()).await.context("set the pods' rules").map(drop)
}

/// A kubelet speaks to the API server of its own node. Until that is there, another one answers, so that
/// the node is Ready as soon as any API server is. Not for the health checks: they are about its own.
fn early_api(spec: &NodeNetwork, early: Option<SocketAddrV4>) -> String {
    let Some(to) = early else { return String::new() };
    let (own, port) = (spec.address.addr(), to.port());
    format!(
        "table ip {EARLY_API} {{\n  chain output {{\n    type nat hook output priority -110; policy accept;\n    \
         meta mark != {OWN_API_MARK} ip daddr {own} tcp dport {port} dnat to {to}\n  }}\n}}\n"
    )
}

fn rules(spec: &NodeNetwork) -> String {
    let pods = spec.cluster_pods;
    let early: String = spec.api.map_or_else(String::new, |api| {
        let service = model::address::api_service(spec.services);
        let rule = format!("ip daddr {service} tcp dport 443 dnat to {api}");
        ["prerouting", "output"]
            .map(|hook| format!("  chain early_{hook} {{\n    type nat hook {hook} priority -90; policy accept;\n    {rule}\n  }}\n"))
            .concat()
    });
    let borrow = spec.pods.map_or_else(String::new, |_| {
        format!(
            "  chain postrouting {{\n    type nat hook postrouting priority srcnat; policy accept;\n    \
             oifname \"{LINK}\" ip saddr {pods} ip daddr != {pods} masquerade\n  }}\n"
        )
    });
    format!("table ip manykube {{}}\ndelete table ip manykube\ntable ip manykube {{\n{borrow}{early}}}\n")
}
