//! From flags, the existing profile and the host to the cluster that is to be. Pure.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use ipnet::Ipv4Net;
use model::cluster::{Network, Node, Wait, WaitFor};
use model::resources::{self, Amount, HostSize};
use model::{Cluster, Cni, DriverKind, Fault, Reason, VipBy, address, names};

use super::vip::Holder;
use super::{Args, checks, cni, kept, values};

/// The pods' range, as in minikube.
const POD_CIDR: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::new(10, 244, 0, 0), 16);
const SERVICE_CIDR: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::new(10, 96, 0, 0), 12);
const API_PORT: u16 = 8443;
const CERT_HOURS: u32 = 26280;
/// Control planes of `--ha`.
const HA: u32 = 3;

/// What the flags cannot know.
#[derive(Debug, Clone)]
pub struct Facts<'a> {
    pub profile: &'a str,
    pub driver: DriverKind,
    pub version: String,
    pub host: HostSize,
    /// Networks of the host, where no subnet may lie.
    pub taken: &'a [Ipv4Net],
    pub cni: Cni,
    pub vip_by: VipBy,
}

/// A cluster that is not there yet.
pub fn fresh(args: &Args, facts: &Facts<'_>) -> Result<Cluster, Fault> {
    let (count, control_planes) = counts(args)?;
    let network = network(args, facts)?;
    let mut nodes = nodes(&network, count, control_planes, &facts.version)?;
    if let Some(ip) = static_ip(args)? {
        exchange(&mut nodes, ip);
    }
    let host = facts.host;
    let memory = match &args.memory {
        Some(text) => resources::parse_memory(text)?.or_all(host.memory_mib),
        None => resources::default_memory(host.memory_mib, count),
    };
    let cpus = match &args.cpus {
        Some(text) => resources::parse_cpus(text)?.or_all(host.cpus),
        None => Amount::Of(resources::DEFAULT_CPUS).or_all(host.cpus),
    };
    let disk = args.disk_size.as_deref().map_or(Ok(resources::DEFAULT_DISK_MIB), resources::parse_disk)?;
    if !args.force {
        resources::check_cpus(cpus, host)?;
        resources::check_memory(memory, host)?;
        resources::check_disk(disk)?;
    }
    let mut cluster = Cluster {
        name: facts.profile.to_owned(),
        driver: facts.driver,
        kubernetes_version: facts.version.clone(),
        cpus,
        memory_mib: memory,
        disk_mib: disk,
        network,
        api_port: args.apiserver_port.map_or(Ok(API_PORT), values::api_port)?,
        nodes,
        api_names: Vec::new(),
        api_ips: Vec::new(),
        cert_expiration_hours: CERT_HOURS,
        addons: BTreeMap::from(["default-storageclass", "storage-provisioner"].map(|a| (a.to_owned(), true))),
        namespace: "default".to_owned(),
        keep_context: false,
        embed_certs: false,
        wait: Wait { components: vec![WaitFor::Apiserver, WaitFor::SystemPods] },
        cni: facts.cni.clone(),
        vip_by: facts.vip_by.clone(),
        node_defaults: checks::node_defaults(args)?,
        extras: model::cluster::Extras {
            listen: checks::listen_address(args, facts.driver)?,
            ..model::cluster::Extras::default()
        },
    };
    changeable(&mut cluster, args)?;
    Ok(cluster)
}

/// All nodes, and how many of them are control planes (the first ones).
fn counts(args: &Args) -> Result<(u32, u32), Fault> {
    if args.nodes == Some(0) || args.control_planes == Some(0) {
        return Err(values::usage("--nodes and --control-planes must be at least 1"));
    }
    if args.ha && args.nodes.is_some_and(|n| n < HA) {
        return Err(values::usage(format!("--ha makes {HA} control planes: --nodes cannot be less")));
    }
    let control_planes = args.control_planes.unwrap_or(if args.ha { HA } else { 1 });
    if args.ha && control_planes < HA {
        return Err(values::usage(format!("--ha makes at least {HA} control planes, not {control_planes}")));
    }
    Ok((args.nodes.unwrap_or(control_planes).max(control_planes), control_planes))
}

fn nodes(network: &Network, count: u32, control_planes: u32, version: &str) -> Result<Vec<Node>, Fault> {
    let node = |(number, ip)| Node {
        name: names::node(number),
        ip,
        control_plane: number <= control_planes,
        worker: true,
        kubernetes_version: version.to_owned(),
        config: model::NodeConfig::default(),
    };
    let all = address::node_ips(network.subnet, network.pod_cidr).zip(1..=count);
    let nodes: Vec<Node> = all.map(|(place, _)| node(place)).collect();
    if nodes.len() < count as usize {
        return Err(values::usage(format!("{} has no room for {count} nodes", network.subnet)));
    }
    Ok(nodes)
}

fn static_ip(args: &Args) -> Result<Option<Ipv4Addr>, Fault> {
    args.static_ip.as_deref().filter(|t| !t.is_empty()).map(values::static_ip).transpose()
}

/// The first node has this address; whose it would have been has the first one's.
fn exchange(nodes: &mut [Node], ip: Ipv4Addr) {
    let [first, others @ ..] = nodes else { return };
    let usual = std::mem::replace(&mut first.ip, ip);
    if let Some(other) = others.iter_mut().find(|n| n.ip == ip) {
        other.ip = usual;
    }
}

/// Two of two, or three of four, must live: one more control plane that can fail, and no more that may.
pub fn even(cluster: &Cluster) -> Option<String> {
    let count = cluster.control_planes().count();
    count.is_multiple_of(2).then(|| {
        format!(
            "{count} control planes survive no more losses than {} do: an odd number is better",
            count - 1
        )
    })
}

fn network(args: &Args, facts: &Facts<'_>) -> Result<Network, Fault> {
    let service_cidr =
        args.service_cluster_ip_range.as_deref().map_or(Ok(SERVICE_CIDR), values::service_range)?;
    let dns_domain = args.dns_domain.as_deref().unwrap_or("cluster.local");
    let dns_domain = values::domain("dns-domain", dns_domain)?;
    let asked = args.subnet.as_deref().map(values::subnet).transpose()?;
    let around = static_ip(args)?.map(|ip| Ipv4Net::new_assert(ip, 24).trunc());
    if let (Some(asked), Some(around)) = (asked, around)
        && asked != around
    {
        return Err(values::usage(format!("--static-ip is in {around}, not in --subnet={asked}")));
    }
    let subnet = match asked.or(around) {
        Some(subnet) => {
            if let Some(other) = facts.taken.iter().find(|t| address::overlap(**t, subnet)) {
                return Err(Fault::new(
                    Reason::SubnetConflict,
                    format!("The subnet {subnet} is in use: the host has {other}"),
                )
                .advice(
                    "Name another one with --subnet or --static-ip, or neither to have a free one chosen",
                ));
            }
            subnet
        }
        None => address::free_subnet(None, facts.taken).ok_or_else(|| {
            Fault::new(Reason::SubnetConflict, "No free subnet: all that are tried by default are in use")
                .advice("Name one with --subnet")
        })?,
    };
    let ranges = [("node", subnet), ("pod", POD_CIDR), ("service", service_cidr)];
    for (i, (a, left)) in ranges.iter().enumerate() {
        for (b, right) in &ranges[i + 1..] {
            if address::overlap(*left, *right) {
                return Err(values::usage(format!("The {a} range {left} overlaps the {b} range {right}")));
            }
        }
    }
    Ok(Network { subnet, pod_cidr: POD_CIDR, service_cidr, dns_domain })
}

/// The existing cluster with what may change on it, and a line for everything asked for that may not.
pub fn existing(old: &Cluster, args: &Args, host: HostSize) -> Result<(Cluster, Vec<String>), Fault> {
    let mut warnings = kept::warnings(old, args, host)?;
    // What could never be is no matter of a warning, as in minikube.
    if let Some(text) = args.memory.as_deref().filter(|_| !args.force) {
        let asked = resources::parse_memory(text)?.or_all(host.memory_mib);
        if asked != old.memory_mib {
            resources::check_memory(asked, host)?;
        }
    }
    let mut keep = |what: &str, differs: bool| {
        if differs {
            warnings.push(format!(
                "You cannot change {what} for an existing cluster. Please first delete the cluster."
            ));
        }
    };
    if let Some(n) = args.nodes {
        keep("the number of nodes", usize::try_from(n).is_ok_and(|n| n != old.nodes.len()));
    }
    keep("--ha", args.ha && !old.is_ha());
    if let Some(port) = args.apiserver_port {
        keep("the API server's port", values::api_port(port)? != old.api_port);
    }
    if let Some(text) = &args.subnet {
        keep("the subnet", values::subnet(text)? != old.network.subnet);
    }
    if let Some(ip) = static_ip(args)? {
        keep("the static IP", old.nodes.first().is_some_and(|n| n.ip != ip));
    }
    if let Some(text) = &args.service_cluster_ip_range {
        keep("the service range", values::service_range(text)? != old.network.service_cidr);
    }
    if let Some(text) = &args.dns_domain {
        keep("the DNS domain", values::domain("dns-domain", text)? != old.network.dns_domain);
    }
    if let Some(asked) = cni::asked(args)? {
        keep("the pod network (CNI)", asked != old.cni);
    }
    if let Some(asked) = args.vip {
        keep("who holds the virtual address", (asked == Holder::Agent) != (old.vip_by == VipBy::Agent));
    }
    let mut new = old.clone();
    changeable(&mut new, args)?;
    Ok((new, warnings))
}

/// What can be changed on a cluster at any start.
pub fn changeable(cluster: &mut Cluster, args: &Args) -> Result<(), Fault> {
    if !args.apiserver_names.is_empty() {
        cluster.api_names = args
            .apiserver_names
            .iter()
            .filter(|n| !n.is_empty())
            .map(|n| values::domain("apiserver-names", n))
            .collect::<Result<_, _>>()?;
    }
    if !args.apiserver_ips.is_empty() {
        cluster.api_ips = values::ips(&args.apiserver_ips)?;
    }
    if let Some(duration) = args.cert_expiration {
        cluster.cert_expiration_hours = values::cert_hours(duration)?;
    }
    if let Some(namespace) = &args.namespace {
        cluster.namespace = values::namespace(namespace)?;
    }
    if let Some(parts) = &args.wait {
        cluster.wait.components = values::wait(parts)?;
    }
    cluster.keep_context |= args.keep_context;
    cluster.embed_certs |= args.embed_certs;
    Ok(())
}

#[cfg(test)]
#[path = "desired_tests.rs"]
pub mod tests;
