//! The desired state of one profile, as the planner, the drivers and the bootstrapper see it.
//! The file it is kept in has minikube's schema; that mapping lives in `config_file`.

use std::collections::BTreeMap;
use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

use ipnet::Ipv4Net;
use serde::{Deserialize, Serialize};

use crate::{Cni, NodeConfig, VipBy, address, names, resources};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cluster {
    /// The profile: also the kubeconfig context and the primary's machine name.
    pub name: String,
    pub driver: DriverKind,
    /// `v1.37.1`
    pub kubernetes_version: String,
    /// Size of every node that does not say otherwise.
    pub cpus: u32,
    pub memory_mib: u32,
    pub disk_mib: u32,
    pub network: Network,
    pub api_port: u16,
    pub nodes: Vec<Node>,
    /// Extra names and addresses in the API server's certificate.
    pub api_names: Vec<String>,
    pub api_ips: Vec<Ipv4Addr>,
    pub cert_expiration_hours: u32,
    pub addons: BTreeMap<String, bool>,
    /// Namespace of the kubeconfig context.
    pub namespace: String,
    pub keep_context: bool,
    pub embed_certs: bool,
    pub wait: Wait,
    pub cni: Cni,
    pub vip_by: VipBy,
    /// What nodes inherit besides their size, which is above.
    #[serde(default)]
    pub node_defaults: NodeConfig,
    #[serde(default)]
    pub extras: Extras,
}

/// What else a cluster is to have. Empty unless its file says so.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Extras {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kube_proxy_mode: Option<ProxyMode>,
    /// Files or URLs, applied when the API answers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub manifests: Vec<String>,
    /// Loaded into all nodes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<String>,
    /// The first and the last address for services of type LoadBalancer. In minikube's part of the file, not
    /// in ours.
    #[serde(skip)]
    pub load_balancers: Option<(Ipv4Addr, Ipv4Addr)>,
    /// Where the nodes' usual ports are published, where they are: loopback if it is not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listen: Option<Ipv4Addr>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProxyMode {
    Iptables,
    Ipvs,
    Nftables,
    /// No kube-proxy at all.
    None,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Network {
    /// The /24 the nodes live in; `.1` is the host, `.254` the virtual address.
    pub subnet: Ipv4Net,
    pub pod_cidr: Ipv4Net,
    pub service_cidr: Ipv4Net,
    pub dns_domain: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// `""` for the first node of a profile, `m02`, `m03`, … for the others, as in minikube.
    pub name: String,
    pub ip: Ipv4Addr,
    pub control_plane: bool,
    pub worker: bool,
    pub kubernetes_version: String,
    /// What it has of its own; the rest is the cluster's.
    #[serde(default)]
    pub config: NodeConfig,
}

/// What `start` waits for before it returns (minikube's VerifyComponents).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    pub components: Vec<WaitFor>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitFor {
    Apiserver,
    SystemPods,
    DefaultSa,
    AppsRunning,
    NodeReady,
    Kubelet,
    Extra,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DriverKind {
    Native,
    Docker,
    Podman,
}

impl DriverKind {
    pub const ALL: [DriverKind; 3] = [DriverKind::Native, DriverKind::Docker, DriverKind::Podman];

    /// Are nodes containers of an engine?
    pub fn is_engine(self) -> bool {
        matches!(self, DriverKind::Docker | DriverKind::Podman)
    }
}

impl WaitFor {
    pub const ALL: [WaitFor; 7] = [
        WaitFor::Apiserver,
        WaitFor::SystemPods,
        WaitFor::DefaultSa,
        WaitFor::AppsRunning,
        WaitFor::NodeReady,
        WaitFor::Kubelet,
        WaitFor::Extra,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            WaitFor::Apiserver => "apiserver",
            WaitFor::SystemPods => "system_pods",
            WaitFor::DefaultSa => "default_sa",
            WaitFor::AppsRunning => "apps_running",
            WaitFor::NodeReady => "node_ready",
            WaitFor::Kubelet => "kubelet",
            WaitFor::Extra => "extra",
        }
    }
}

impl fmt::Display for DriverKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DriverKind::Native => "native",
            DriverKind::Docker => "docker",
            DriverKind::Podman => "podman",
        })
    }
}

impl FromStr for DriverKind {
    type Err = ();
    fn from_str(s: &str) -> Result<Self, ()> {
        match s {
            "native" => Ok(DriverKind::Native),
            "docker" => Ok(DriverKind::Docker),
            "podman" => Ok(DriverKind::Podman),
            _ => Err(()),
        }
    }
}

impl Cluster {
    /// The first control plane: what `ip`, `ssh` and `logs` mean when no node is named.
    pub fn primary(&self) -> Option<&Node> {
        self.nodes.iter().find(|n| n.control_plane)
    }

    pub fn control_planes(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|n| n.control_plane)
    }

    pub fn is_ha(&self) -> bool {
        self.control_planes().count() > 1
    }

    /// The address every kubeconfig inside the cluster means, from the first day on.
    pub fn vip(&self) -> Ipv4Addr {
        address::virtual_ip(self.network.subnet)
    }

    pub fn gateway(&self) -> Ipv4Addr {
        address::gateway(self.network.subnet)
    }

    /// Where clients on the host reach the API: the virtual address only where it can move.
    pub fn endpoint(&self) -> Option<Ipv4Addr> {
        if self.is_ha() { Some(self.vip()) } else { self.primary().map(|n| n.ip) }
    }

    pub fn machine(&self, node: &Node) -> String {
        names::machine(&self.name, &node.name)
    }

    /// Finds a node by `m02`, `<profile>-m02`, or the profile's name for the primary.
    pub fn find_node(&self, asked: &str) -> Option<&Node> {
        self.nodes.iter().find(|n| (!n.name.is_empty() && n.name == asked) || self.machine(n) == asked)
    }

    /// A node to be added: numbered after the last entry, as in minikube, so that a gap stays one; one is filled only when
    /// nothing else is left. `None` when the node network or the pods' is full.
    pub fn next_node(&self, name: Option<&str>, control_plane: bool) -> Option<Node> {
        let Network { subnet, pod_cidr, .. } = self.network;
        // The first one may have an address of the user's choice.
        let number = |n: &Node| match n.name.as_str() {
            "" => 1,
            _ => u32::from(n.ip) - u32::from(subnet.network()) - 1,
        };
        let last = self.nodes.last().map_or(1, number);
        let free = |(number, ip): &(u32, Ipv4Addr)| {
            let taken = |n: &Node| n.ip == *ip || (name.is_none() && n.name == names::node(*number));
            *number > 1 && !self.nodes.iter().any(taken)
        };
        let mut all = address::node_ips(subnet, pod_cidr).filter(free);
        let (next, ip) = all.clone().find(|(number, _)| *number > last).or_else(|| all.next())?;
        Some(Node {
            name: name.map_or_else(|| names::node(next), str::to_owned),
            ip,
            control_plane,
            worker: true,
            kubernetes_version: self.kubernetes_version.clone(),
            config: NodeConfig::default(),
        })
    }

    /// There were `before` nodes and now there are more. Where nobody chose the memory it is the default
    /// of the new number, as in minikube; nodes that were there keep what they have.
    pub fn share_memory(&mut self, before: usize, host_mib: u32) {
        let default =
            |nodes: usize| resources::default_memory(host_mib, u32::try_from(nodes).unwrap_or(u32::MAX));
        let (old, new) = (self.memory_mib, default(self.nodes.len()));
        if old != default(before) || new == old {
            return;
        }
        for node in self.nodes.iter_mut().take(before) {
            node.config.memory_mib.get_or_insert(old);
        }
        self.memory_mib = new;
    }

    pub fn node_cpus(&self, node: &Node) -> u32 {
        node.config.cpus.unwrap_or(self.cpus)
    }

    pub fn node_memory_mib(&self, node: &Node) -> u32 {
        node.config.memory_mib.unwrap_or(self.memory_mib)
    }

    /// See [`NodeConfig::own_disk_mib`].
    pub fn node_disk_mib(&self, node: &Node) -> Option<u32> {
        self.config_of(node).own_disk_mib()
    }

    /// All that a node is to have, its own and what it inherits.
    pub fn config_of(&self, node: &Node) -> NodeConfig {
        let mut base = self.node_defaults.clone();
        (base.cpus, base.memory_mib, base.disk_mib) =
            (Some(self.cpus), Some(self.memory_mib), Some(self.disk_mib));
        let base = if node.control_plane { base } else { base.for_worker() };
        node.config.over(&base)
    }

    pub fn pod_cidr_of(&self, node: &Node) -> Ipv4Net {
        address::pod_cidr(self.network.subnet, self.network.pod_cidr, node.ip)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str], numbers: &[u32]) -> Cluster {
        let subnet: Ipv4Net = "192.168.49.0/24".parse().unwrap();
        let mut cluster = crate::config_file::tests::sample();
        let first = cluster.nodes[0].clone();
        let node = |(name, number): (&&str, &u32)| Node {
            name: (*name).to_owned(),
            ip: address::node_ip(subnet, *number).unwrap(),
            ..first.clone()
        };
        cluster.nodes = names.iter().zip(numbers).map(node).collect();
        cluster
    }

    #[test]
    fn the_next_node_follows_the_last_entry() {
        for (have, numbers, want) in [
            (&[""][..], &[1][..], ("m02", "192.168.49.3")),
            (&["", "m02", "m04"], &[1, 2, 4], ("m05", "192.168.49.6")),
            (&["", "m02"], &[1, 2], ("m03", "192.168.49.4")),
            (&["m02", "m03"], &[2, 3], ("m04", "192.168.49.5")),
            (&["", "node2"], &[1, 2], ("m03", "192.168.49.4")),
            (&["", "m03"], &[1, 2], ("m04", "192.168.49.5")),
        ] {
            let next = names(have, numbers).next_node(None, false).unwrap();
            assert_eq!((next.name.as_str(), next.ip.to_string().as_str()), want, "{have:?}");
        }
        let named = names(&[""], &[1]).next_node(Some("node2"), true).unwrap();
        assert_eq!((named.name.as_str(), named.control_plane), ("node2", true));
        // Nothing is left after the last one.
        let next = names(&["", "m252"], &[1, 252]).next_node(None, false).unwrap();
        assert_eq!((next.name.as_str(), next.ip.to_string().as_str()), ("m02", "192.168.49.3"));
    }

    #[test]
    fn the_range_of_every_node_lies_in_the_pods() {
        let mut cluster = names(&[""], &[1]);
        cluster.network.pod_cidr = "10.9.0.0/24".parse().unwrap();
        assert_eq!(cluster.next_node(None, false), None, "there is one");
        // Four, also when nodes come and go.
        cluster.network.pod_cidr = "10.9.0.0/22".parse().unwrap();
        for round in 0..10 {
            while let Some(node) = cluster.next_node(None, false) {
                let pods = cluster.pod_cidr_of(&node);
                assert!(cluster.network.pod_cidr.contains(&pods), "{pods}");
                cluster.nodes.push(node);
            }
            let mut ips: Vec<Ipv4Addr> = cluster.nodes.iter().map(|n| n.ip).collect();
            ips.sort();
            ips.dedup();
            assert_eq!((ips.len(), cluster.nodes.len()), (4, 4));
            cluster.nodes.remove(1 + round % 3);
        }
    }

    #[test]
    fn memory_that_nobody_chose_is_shared() {
        let sizes = |memory_mib: u32| {
            let mut cluster = Cluster { memory_mib, ..names(&["", "m02"], &[1, 2]) };
            cluster.share_memory(1, 16_000);
            let each = cluster.nodes.iter().map(|n| cluster.node_memory_mib(n));
            (cluster.memory_mib, each.collect::<Vec<_>>())
        };
        assert_eq!(sizes(4000), (3072, vec![4000, 3072]));
        assert_eq!(sizes(5000), (5000, vec![5000, 5000]), "somebody asked for it");
    }

    #[test]
    fn the_first_entry_may_be_any() {
        let cluster = names(&["m02", "m03"], &[2, 3]);
        assert_eq!(cluster.primary().map(|n| cluster.machine(n)).unwrap(), "demo-m02");
        assert_eq!(cluster.endpoint(), Some(cluster.vip()));
        assert!(cluster.find_node("demo").is_none());
        assert_eq!(cluster.find_node("demo-m03").unwrap().name, "m03");
    }
}
