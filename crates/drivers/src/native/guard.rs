//! What is inside a cluster stays inside: the profile's nft table on the host.
//!
//! nft itself comes from the node image, so that the host needs nothing installed.

use std::path::Path;

use anyhow::Result;
use model::{Cluster, Home};

use super::borrowed;
use super::network::bridge_name;

pub const NFT: &str = "/usr/sbin/nft";

fn table(home: &Home, profile: &str) -> String {
    format!("manykube-{}", bridge_name(home, profile))
}

/// Do others come in by ports of the host that lead to nodes?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Publish {
    Nothing,
    Ports,
}

/// Written as a whole and replaced as a whole: the rules are never half there.
fn rules(home: &Home, cluster: &Cluster, publish: Publish) -> String {
    let published = match publish {
        Publish::Nothing => "",
        Publish::Ports => "oifname \"BRIDGE\" ct status dnat accept comment \"a port that is published\"",
    };
    let (table, bridge) = (table(home, &cluster.name), bridge_name(home, &cluster.name));
    let net = &cluster.network;
    let (subnet, pods, services) = (net.subnet, net.pod_cidr, net.service_cidr);
    let published = published.replace("BRIDGE", &bridge);
    format!(
        r#"table ip {table} {{}}
delete table ip {table}
table ip {table} {{
  chain forward {{
    type filter hook forward priority -5; policy accept;
    iifname "{bridge}" oifname "{bridge}" accept
    iifname "{bridge}" ip saddr != {subnet} counter drop comment "only node addresses may leave the bridge"
    iifname "{bridge}" ip daddr {{ {pods}, {services} }} counter reject with icmp net-unreachable comment "pods and services live inside"
    {published}
    oifname "{bridge}" ct state new counter reject with icmp host-unreachable comment "nobody comes in from elsewhere"
    oifname != "{bridge}" ip daddr {subnet} counter reject with icmp host-unreachable comment "nodes live on the bridge"
  }}
  chain output {{
    type filter hook output priority -5; policy accept;
    oifname != {{ "{bridge}", "lo" }} ip daddr {subnet} counter reject with icmp host-unreachable comment "nodes live on the bridge"
  }}
  chain postrouting {{
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr {subnet} oifname != "{bridge}" masquerade
  }}
}}
"#
    )
}

pub fn up(home: &Home, cluster: &Cluster, image_rootfs: &Path, publish: Publish) -> Result<()> {
    nft(image_rootfs, &rules(home, cluster, publish))
}

/// The empty table first makes the removal of one that is not there no error.
pub fn down(home: &Home, profile: &str, image_rootfs: &Path) -> Result<()> {
    let table = table(home, profile);
    nft(image_rootfs, &format!("table ip {table} {{}}\ndelete table ip {table}\n"))
}

/// An earlier version had packets lost by a table of the host's.
pub fn forget_faults(home: &Home, profile: &str, image_rootfs: &Path) {
    let table = format!("{}-faults", table(home, profile));
    // A kernel without tables for bridges has none to remove.
    if let Err(e) = nft(image_rootfs, &format!("table bridge {table} {{}}\ndelete table bridge {table}\n")) {
        tracing::debug!("no table of faults: {e:#}");
    }
}

/// Are the profile's rules there? What they say is not looked at: they are replaced as a whole.
pub fn is_up(home: &Home, profile: &str, image_rootfs: &Path) -> bool {
    nft(image_rootfs, &format!("list table ip {}\n", table(home, profile))).is_ok()
}

/// Runs the image's nft in this network namespace.
pub fn nft(image_rootfs: &Path, script: &str) -> Result<()> {
    borrowed::run(image_rootfs, NFT, &["-f", "-"], &[], script).map(drop)
}
