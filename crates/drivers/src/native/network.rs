//! The profile's bridge, and the cable of each machine to it.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use ipnet::Ipv4Net;
use model::{Cluster, Home, names};
use netlink::{Netlink, Veth};

pub const MTU: u32 = 1500;
const NODE_LINK: &str = "eth0";

pub fn bridge_name(profile: &str) -> String {
    names::interface("mk-", profile)
}

fn cable_name(machine: &str) -> String {
    names::interface("mkv-", machine)
}

/// The same address gives the same MAC, so that nobody's ARP cache is wrong after a restart.
fn mac(ip: Ipv4Addr) -> [u8; 6] {
    let [a, b, c, d] = ip.octets();
    [0x02, 0x6d, a, b, c, d]
}

pub async fn up(cluster: &Cluster) -> Result<()> {
    let net = Netlink::open()?;
    let name = bridge_name(&cluster.name);
    let wanted = Ipv4Net::new(cluster.gateway(), cluster.network.subnet.prefix_len())?;
    let bridge = net.bridge(&name).await?;
    let foreign = net.addresses().await?.into_iter().find(|(i, a)| *i == bridge.index && *a != wanted);
    if let Some((_, other)) = foreign {
        bail!(
            "bridge {name} has address {other}, not {wanted}: a cluster of that name exists in another home"
        );
    }
    // First, so that there is no moment at which these addresses go to the default route.
    net.add_unreachable(cluster.network.subnet).await?;
    net.add_address(bridge.index, wanted).await
}

/// Which subnet a profile's network took, kept apart from its configuration: it must be possible to
/// take a network down when that is lost.
fn record_file(home: &Home, profile: &str) -> PathBuf {
    home.root().join("networks").join(format!("{profile}.json"))
}

pub fn record(home: &Home, cluster: &Cluster) -> Result<()> {
    let file = record_file(home, &cluster.name);
    if let Some(dir) = file.parent() {
        fs_err::create_dir_all(dir)?;
    }
    fs_err::write(file, serde_json::to_vec(&cluster.network.subnet)?).map_err(Into::into)
}

pub async fn down(home: &Home, profile: &str, forget: bool) -> Result<()> {
    let net = Netlink::open()?;
    net.remove_link(&bridge_name(profile)).await?;
    let file = record_file(home, profile);
    if !forget || !file.exists() {
        return Ok(());
    }
    let subnet: Ipv4Net =
        serde_json::from_slice(&fs_err::read(&file)?).with_context(|| format!("read {}", file.display()))?;
    net.remove_unreachable(subnet).await?;
    fs_err::remove_file(file).map_err(Into::into)
}

/// Takes a machine's cable away. The kernel does so itself when a namespace ends, but in its own time:
/// the cable of a machine that just died would pass for that of the one booted next.
pub async fn detach(machine: &str) -> Result<()> {
    Netlink::open()?.remove_link(&cable_name(machine)).await
}

/// Connects a machine to its bridge, unless it is.
pub async fn attach(cluster: &Cluster, machine: &str, ip: Ipv4Addr, pid: u32) -> Result<()> {
    let net = Netlink::open()?;
    let host_name = cable_name(machine);
    if net.link(&host_name).await?.is_some() {
        return Ok(());
    }
    let bridge = bridge_name(&cluster.name);
    let Some(bridge) = net.link(&bridge).await? else { bail!("bridge {bridge} is missing") };
    let veth = Veth {
        host_name: &host_name,
        bridge: bridge.index,
        peer_name: NODE_LINK,
        peer_mac: mac(ip),
        peer_pid: pid,
        mtu: MTU,
    };
    net.veth(&veth).await
}

pub async fn is_up(profile: &str) -> Result<bool> {
    Ok(Netlink::open()?.link(&bridge_name(profile)).await?.is_some())
}

pub async fn in_use() -> Result<Vec<Ipv4Net>> {
    let net = Netlink::open()?;
    let addresses = net.addresses().await?.into_iter().map(|(_, a)| a.trunc());
    let mut all: Vec<Ipv4Net> = addresses.chain(net.routed().await?.into_iter().map(|(n, _)| n)).collect();
    all.sort();
    all.dedup();
    Ok(all)
}
