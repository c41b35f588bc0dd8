//! The desired state of one profile, as the planner, the drivers and the bootstrapper see it.
//! The file it is kept in has minikube's schema; that mapping lives in `config_file`.

use std::collections::BTreeMap;
use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

use ipnet::Ipv4Net;
use serde::{Deserialize, Serialize};

use crate::{address, names};

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
    pub cpus: Option<u32>,
    pub memory_mib: Option<u32>,
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
        })
    }
}

impl FromStr for DriverKind {
    type Err = ();
    fn from_str(s: &str) -> Result<Self, ()> {
        match s {
            "native" => Ok(DriverKind::Native),
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

    pub fn node_cpus(&self, node: &Node) -> u32 {
        node.cpus.unwrap_or(self.cpus)
    }

    pub fn node_memory_mib(&self, node: &Node) -> u32 {
        node.memory_mib.unwrap_or(self.memory_mib)
    }

    pub fn pod_cidr_of(&self, node: &Node) -> Ipv4Net {
        address::pod_cidr(self.network.subnet, self.network.pod_cidr, node.ip)
    }
}
