//! The profile's bridge, and the cable of each machine to it.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use anyhow::{Result, bail};
use ipnet::Ipv4Net;
use model::address::{mac, overlap};
use model::{Cluster, Fault, Home, Reason, names};
use netlink::{Netlink, Veth, refuse_ipv6};

use super::{bypass, host};

pub const MTU: u32 = 1500;
pub const NODE_LINK: &str = "eth0";
/// How the names of all our bridges begin.
pub const BRIDGES: &str = "mk-";

/// Interfaces are the host's, names are a home's: two homes may have clusters of the same name.
pub fn bridge_name(home: &Home, profile: &str) -> String {
    names::tagged(BRIDGES, &format!("{}:{profile}", home.root().display()))
}

pub fn cable_name(home: &Home, machine: &str) -> String {
    names::tagged("mkv-", &format!("{}:{machine}", home.root().display()))
}

/// Makes the bridge with its address, or mends it; `machines` are those that should be on it.
pub async fn up(home: &Home, cluster: &Cluster, machines: &[String]) -> Result<()> {
    // Of all homes, one at a time looks who has the subnet and takes it.
    let _one = host::lock()?;
    let net = Netlink::open()?;
    let name = bridge_name(home, &cluster.name);
    let subnet = cluster.network.subnet;
    let own = net.link(&name).await?.map(|l| l.index);
    let foreign = net.addresses().await?.into_iter().find(|(i, a)| Some(*i) != own && overlap(*a, subnet));
    if let Some((_, other)) = foreign {
        return Err(Fault::new(
            Reason::SubnetConflict,
            format!("The subnet {subnet} is in use: the host has {other}"),
        )
        .advice("Stop what uses it, or delete this cluster and start it anew with another --subnet")
        .into());
    }
    // First, so that there is no moment at which these addresses go to the default route.
    net.add_unreachable(subnet).await?;
    let bridge = net.bridge(&name, mac(cluster.gateway())).await?;
    net.add_address(bridge.index, Ipv4Net::new(cluster.gateway(), subnet.prefix_len())?).await?;
    // A bridge that was lost took nobody's cable with it, but they hang loose.
    for machine in machines {
        if let Some(cable) = net.link(&cable_name(home, machine)).await? {
            net.set_controller(cable.index, bridge.index).await?;
            bypass::tag(&net, cable.index).await;
        }
    }
    Ok(())
}

/// Which subnet a profile's network took, kept apart from its configuration: it must be possible to
/// take a network down when that is lost.
fn record_file(home: &Home, profile: &str) -> PathBuf {
    home.root().join("networks").join(format!("{profile}.json"))
}

pub fn record(home: &Home, cluster: &Cluster) -> Result<()> {
    let subnet = serde_json::to_vec(&cluster.network.subnet)?;
    Ok(base::atomic::replace(&record_file(home, &cluster.name), &subnet, 0o644)?)
}

/// Has this home made a network for the profile? Then it is ours to remove.
pub fn is_recorded(home: &Home, profile: &str) -> bool {
    record_file(home, profile).exists()
}

pub async fn down(home: &Home, profile: &str, forget: bool) -> Result<()> {
    let net = Netlink::open()?;
    net.remove_link(&bridge_name(home, profile)).await?;
    if !forget {
        return Ok(());
    }
    let file = record_file(home, profile);
    match serde_json::from_slice::<Ipv4Net>(&fs_err::read(&file)?) {
        Ok(subnet) => net.remove_unreachable(subnet).await?,
        // Losing one unreachable route is better than a cluster that cannot be deleted.
        Err(e) => tracing::warn!("{} does not say which subnet it was: {e}", file.display()),
    }
    Ok(base::atomic::remove(&file)?)
}

/// Takes a machine's cable away. The kernel does so itself when a namespace ends, but in its own time:
/// the cable of a machine that just died would pass for that of the one booted next.
pub async fn detach(home: &Home, machine: &str) -> Result<()> {
    Netlink::open()?.remove_link(&cable_name(home, machine)).await
}

/// Connects a machine to its bridge, unless it is.
pub async fn attach(home: &Home, cluster: &Cluster, machine: &str, ip: Ipv4Addr, pid: u32) -> Result<()> {
    let net = Netlink::open()?;
    let host_name = cable_name(home, machine);
    if let Some(cable) = net.link(&host_name).await? {
        bypass::tag(&net, cable.index).await;
        return Ok(());
    }
    let bridge = bridge_name(home, &cluster.name);
    let Some(bridge) = net.link(&bridge).await? else { bail!("bridge {bridge} is missing") };
    let veth = Veth {
        host_name: &host_name,
        bridge: bridge.index,
        peer_name: NODE_LINK,
        peer_mac: mac(ip),
        peer_pid: pid,
        mtu: MTU,
    };
    net.veth(&veth).await?;
    // A bridge that is lost leaves it alone with the node.
    refuse_ipv6(&host_name)?;
    if let Some(cable) = net.link(&host_name).await? {
        bypass::tag(&net, cable.index).await;
    }
    Ok(())
}

/// Has this machine a cable? Where it leads to is the network's business.
pub async fn is_connected(home: &Home, machine: &str) -> Result<bool> {
    Ok(Netlink::open()?.link(&cable_name(home, machine)).await?.is_some())
}

/// Bridge and address are there, and the cables of these machines are plugged in.
pub async fn is_up(home: &Home, cluster: &Cluster, machines: &[String]) -> Result<bool> {
    let net = Netlink::open()?;
    let Some(bridge) = net.link(&bridge_name(home, &cluster.name)).await? else { return Ok(false) };
    for machine in machines {
        let cable = net.link(&cable_name(home, machine)).await?;
        if cable.is_some_and(|c| c.controller != Some(bridge.index)) {
            return Ok(false);
        }
    }
    let gateway = cluster.gateway();
    Ok(net.addresses().await?.iter().any(|(index, a)| *index == bridge.index && a.addr() == gateway))
}

/// What the host has, and what other commands are about to take.
pub async fn in_use() -> Result<Vec<Ipv4Net>> {
    let mut all = of_host().await?;
    all.extend(host::reserved());
    Ok(all)
}

pub async fn of_host() -> Result<Vec<Ipv4Net>> {
    let net = Netlink::open()?;
    let addresses = net.addresses().await?.into_iter().map(|(_, a)| a.trunc());
    let mut all: Vec<Ipv4Net> = addresses.chain(net.routed().await?.into_iter().map(|(n, _)| n)).collect();
    all.sort();
    all.dedup();
    Ok(all)
}

#[cfg(test)]
pub mod tests {
    use nix::sched::{CloneFlags, unshare};

    use super::*;

    /// In a network namespace of its own; not at all without the right to make one.
    pub fn apart(test: impl AsyncFnOnce() + Send) {
        if !nix::unistd::geteuid().is_root() {
            return;
        }
        let body = || {
            unshare(CloneFlags::CLONE_NEWNET).unwrap();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(test());
        };
        std::thread::scope(|scope| scope.spawn(body).join()).unwrap();
    }

    const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

    /// The kernel gives a bridge the lowest address of its ports, unless it was told otherwise.
    #[test]
    fn a_bridge_keeps_its_hardware_address() {
        apart(async || {
            let net = Netlink::open().unwrap();
            let ip = |words: &str| {
                let done = std::process::Command::new("ip").args(words.split(' ')).status().unwrap();
                assert!(done.success(), "ip {words}");
            };
            net.bridge("mk-test", MAC).await.unwrap();
            // As an earlier version made it.
            ip("link add mk-old type bridge");
            net.bridge("mk-old", MAC).await.unwrap();
            let old = net.mac("mk-old").await.unwrap();
            for (port, bridge) in [("one", "mk-test"), ("two", "mk-old")] {
                ip(&format!("link add {port} address 00:00:00:00:00:01 type veth peer name {port}-peer"));
                ip(&format!("link set {port} master {bridge}"));
            }
            assert_eq!([net.mac("mk-test").await.unwrap(), net.mac("mk-old").await.unwrap()], [MAC, old]);
        });
    }

    #[test]
    fn no_router_is_taken_from_a_bridge() {
        apart(async || {
            let net = Netlink::open().unwrap();
            let setting = |name: &str| {
                let path = format!("/proc/sys/net/ipv6/conf/mk-test/{name}");
                std::fs::read_to_string(path).ok().map(|value| value.trim().to_owned())
            };
            net.bridge("mk-test", MAC).await.unwrap();
            if setting("accept_ra").is_none() {
                return;
            }
            let all = || ["accept_ra", "autoconf", "disable_ipv6"].map(setting).map(Option::unwrap);
            assert_eq!(all(), ["0", "0", "1"]);
            // One that was changed, or that an earlier version made.
            std::fs::write("/proc/sys/net/ipv6/conf/mk-test/accept_ra", "1").unwrap();
            net.bridge("mk-test", MAC).await.unwrap();
            assert_eq!(all(), ["0", "0", "1"]);
        });
    }
}
