//! What the agent in a node is told. One document, `/etc/manykube/node.json`, written before the
//! machine boots: everything a node needs to come up again by itself after any stop.

use std::net::{Ipv4Addr, SocketAddrV4};

use ipnet::Ipv4Net;
use serde::{Deserialize, Serialize};

/// Where the document lies in the node.
pub const SPEC_PATH: &str = "/etc/manykube/node.json";
/// What an agent is told while it runs: who else is there. Written anew (by a rename, so that nobody
/// reads half of it) whenever nodes come or go; the agent notices within a fraction of a second.
pub const PEERS_PATH: &str = "/etc/manykube/peers.json";
/// Of control planes: what their agents prove to each other that they are ([`ElectionKey`]).
pub const ELECTION_PATH: &str = "/etc/manykube/election.json";
/// Packets that the node loses on purpose ([`crate::injected::PacketFaults`]). Not there while it loses none.
pub const PACKET_FAULTS_PATH: &str = "/etc/manykube/packet-faults.json";
/// How the Docker engine is to run, once somebody has asked for it.
pub const DOCKER_PATH: &str = "/etc/manykube/docker.json";
/// The agent's own program in the node.
pub const AGENT_PATH: &str = "/usr/local/bin/manykube";
/// The container images of the node image: what their containerd kept, read-only. A node's containerd has links there.
pub const IMAGES_DIR: &str = "/usr/lib/manykube/images";
/// The agent's own, gone with the boot: its socket, for programs of the node.
pub const RUN_DIR: &str = "/run/manykube";
pub const SOCKET_NAME: &str = "agent.sock";
/// The descriptor under which an agent finds the listening socket of its channel, where the host made one.
pub const CHANNEL_FD: i32 = 3;
/// Also there, so that it is gone with the boot: what the host wants to stand still ([`Hold`]).
pub const HOLD_NAME: &str = "hold.json";
/// Who may log in, and what the node is known by (SSH).
pub const SSH_AUTHORIZED_KEYS: &str = "/etc/manykube/authorized_keys";
pub const SSH_HOST_KEY: &str = "/etc/manykube/ssh_host_key";
/// Manifests that the kubelet runs by itself.
pub const STATIC_POD_DIR: &str = "/etc/kubernetes/manifests";
/// The table of rules that leads a kubelet elsewhere while its own API server is not there.
pub const EARLY_API: &str = "manykube_early";
/// The API server's.
pub const API_SERVER_POD: &str = "kube-apiserver.yaml";
/// What is on a node's own disk, where it has one.
pub const DISK_DIR: &str = "/var/lib/kubelet";
/// What fills that disk on purpose, in that directory.
pub const FILL_NAME: &str = ".fault-fill-disk";
/// Logs of the supervised services (in the node).
pub const LOG_DIR: &str = "/var/log/manykube";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeSpec {
    pub profile: String,
    pub machine: String,
    pub control_plane: bool,
    pub network: NodeNetwork,
    /// Lines of /etc/hosts besides localhost.
    pub hosts: Vec<HostEntry>,
    /// Run in order, once, before the kubelet starts and while containerd does.
    pub prepare: Vec<Prepare>,
    pub kubelet: Kubelet,
    /// Of a control plane whose API server comes later than others: who answers its kubelet until then.
    #[serde(default)]
    pub early_api: Option<SocketAddrV4>,
    /// Set when the machine is not to answer for more CPUs or memory than it was given.
    pub cpus: Option<u32>,
    pub memory_mib: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeNetwork {
    /// Address with the node network's prefix length.
    pub address: Ipv4Net,
    pub gateway: Ipv4Addr,
    /// Held by this node (one control plane holds it alone until there are more). Once
    /// `Peers::election` is set the election decides instead.
    pub vip: Option<Ipv4Addr>,
    /// This node's share of the pods' range; `None` when another CNI is to configure it.
    pub pods: Option<Ipv4Net>,
    pub cluster_pods: Ipv4Net,
    pub services: Ipv4Net,
    /// Where the API's own service leads while kube-proxy is not there yet.
    #[serde(default)]
    pub api: Option<SocketAddrV4>,
    /// Name servers of the host that a node can reach.
    pub dns: Vec<Ipv4Addr>,
    pub mtu: u32,
}

/// The document at [`PEERS_PATH`]. It is apart from [`NodeSpec`] because it changes while nodes run:
/// a cluster of one control plane grows to three without a restart.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peers {
    /// Addresses of all control planes, the reader's own among them.
    #[serde(default)]
    pub control_planes: Vec<Ipv4Addr>,
    /// Addresses of all nodes. Their shares of the pods' range follow from them.
    #[serde(default)]
    pub nodes: Vec<Ipv4Addr>,
    /// Without it nobody moves the virtual address.
    #[serde(default)]
    pub election: Option<Election>,
    /// The first and the last address of services of type LoadBalancer, unless it is as usual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_balancers: Option<(Ipv4Addr, Ipv4Addr)>,
}

/// The document at [`DOCKER_PATH`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Docker {
    /// Without one it does not run.
    #[serde(default)]
    pub argv: Vec<String>,
}

/// How the control planes agree who holds the virtual address. The same on all of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Election {
    pub vip: Ipv4Addr,
    /// Of the API servers, on the nodes and on the virtual address.
    pub api_port: u16,
    /// Of the advertisements (UDP).
    #[serde(default = "Election::default_port")]
    pub port: u16,
}

impl Election {
    pub fn default_port() -> u16 {
        // VRRP's protocol number, in the range that nobody hands out by default.
        10112
    }

    pub fn new(vip: Ipv4Addr, api_port: u16) -> Election {
        Election { vip, api_port, port: Election::default_port() }
    }
}

/// The document at [`ELECTION_PATH`]. Apart from [`Peers`] because workers have no part in it.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ElectionKey {
    /// Any text that no other knows; the same on all control planes.
    pub key: String,
}

/// The document [`HOLD_NAME`]: written by `pause`, emptied by `unpause`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// Services that are ended, and not started again until they are let go.
    pub services: Vec<String>,
    /// Whose containers are frozen; `*` means all. The agent only passes it on.
    pub namespaces: Vec<String>,
}

impl Hold {
    pub fn holds(&self, service: &str) -> bool {
        self.services.iter().any(|s| s == service)
    }

    pub fn freezes(&self, namespace: &str) -> bool {
        self.namespaces.iter().any(|n| n == namespace || n == "*")
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostEntry {
    pub ip: Ipv4Addr,
    pub name: String,
}

/// A command that makes something the node needs. It is not run again once `creates` exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prepare {
    pub name: String,
    pub argv: Vec<String>,
    pub creates: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kubelet {
    pub argv: Vec<String>,
    /// Environment files read before each start (kubeadm-flags.env), `KUBELET_KUBEADM_ARGS="…"`.
    pub env_files: Vec<String>,
    pub env: Vec<(String, String)>,
}

/// A file to be placed in a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeFile {
    pub path: String,
    pub mode: u32,
    pub data: Vec<u8>,
}

impl NodeFile {
    pub fn new(path: impl Into<String>, mode: u32, data: impl Into<Vec<u8>>) -> NodeFile {
        NodeFile { path: path.into(), mode, data: data.into() }
    }
}

/// The agent's answer: the node's state as one document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeState {
    pub machine: String,
    /// Seconds since the agent became init of the node.
    pub uptime: u64,
    /// Of this boot; empty until it is made.
    #[serde(default)]
    pub boot_id: String,
    pub network_ready: bool,
    /// On its way down.
    #[serde(default)]
    pub stopping: bool,
    /// What keeps the node from coming up, besides a failed preparation.
    pub problem: Option<String>,
    pub prepare: PrepareState,
    pub services: Vec<ServiceState>,
    /// File names in the kubelet's static pod directory.
    pub static_pods: Vec<String>,
    /// Per cent of /var in use.
    pub var_used_percent: u8,
    /// What stands still by wish of the host.
    #[serde(default)]
    pub hold: Hold,
    /// This node answers for the virtual address.
    #[serde(default)]
    pub has_vip: bool,
    /// Of control planes that take part in an election.
    #[serde(default)]
    pub vip: Option<VipState>,
    /// To the pods of other nodes.
    #[serde(default)]
    pub routes: Vec<PodRoute>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VipState {
    pub address: Ipv4Addr,
    /// This node holds it.
    pub holder: bool,
    /// Who holds it, as far as this node has heard.
    pub held_by: Option<Ipv4Addr>,
    /// Of this node's own API server.
    pub health: Health,
    /// Seconds that this node has (or has not) been the holder.
    pub since: u64,
    /// Counts the elections.
    pub term: u64,
    /// Nodes whose API servers get the connections made to the virtual address.
    pub backends: Vec<Ipv4Addr>,
}

/// Of an API server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Health {
    /// It does not answer, or too late, or only with failures.
    Down,
    /// It answers; whether it is ready is not known or not yet true.
    Alive,
    Ready,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodRoute {
    pub pods: Ipv4Net,
    pub via: Ipv4Addr,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "lowercase")]
pub enum PrepareState {
    Running { step: String },
    Done,
    Failed { step: String, output: String },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceState {
    pub name: String,
    pub running: bool,
    pub pid: Option<u32>,
    pub restarts: u32,
    /// Why it is not running, or why it last ended.
    pub last_exit: Option<String>,
}

impl NodeState {
    pub fn service(&self, name: &str) -> Option<&ServiceState> {
        self.services.iter().find(|s| s.name == name)
    }
}
