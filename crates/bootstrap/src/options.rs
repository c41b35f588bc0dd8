//! What the caller knows and the cluster does not say: the node image's and the host's part.

use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The sandbox image that lies in the node image, `registry.k8s.io/pause:3.10.2`.
    pub pause_image: String,
    pub proxy_mode: ProxyMode,
    /// Name servers of the host that a node can reach.
    pub nameservers: Vec<Ipv4Addr>,
    /// The host has cgroup v1, which a kubelet refuses unless it is told not to.
    pub cgroup_v1: bool,
    /// Nodes are in a user namespace (a rootless engine's): what is the whole host's is not theirs to change.
    pub user_namespace: bool,
    /// Set for a control plane that joins an etcd which is there: the value of `--initial-cluster`.
    pub join: Option<String>,
    /// A control plane whose API server waits until it is let go.
    pub hold_api: bool,
    /// `kubeadm join` is to take it in, instead of finding what that would fetch in its place.
    pub by_kubeadm: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProxyMode {
    Nftables,
    Iptables,
}

impl ProxyMode {
    pub fn as_str(self) -> &'static str {
        match self {
            ProxyMode::Nftables => "nftables",
            ProxyMode::Iptables => "iptables",
        }
    }
}
