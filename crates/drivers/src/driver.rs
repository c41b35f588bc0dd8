//! What every driver can do. A node is something that can be booted and that commands run in;
//! abilities that not every driver has get small traits of their own.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use async_trait::async_trait;
use base::Stream;
use image::NodeImage;
use image::registry::{LayerProgress, Reference};
use ipnet::Ipv4Net;
use model::node_config::Port;
use model::node_spec::NodeFile;
use model::{Cluster, DriverKind, Fault};
use serde::{Deserialize, Serialize};

use crate::freeze::Freeze;

/// ```text
///            create            boot
///  Absent ----------> Stopped ------> Running
///    ^                  |  ^             |
///    +------remove------+  +--power_off--+
/// ```
#[async_trait]
pub trait Driver: Send + Sync {
    fn kind(&self) -> DriverKind;

    /// Can this host run machines of this kind? If not, what is missing?
    async fn preflight(&self) -> Result<(), Fault>;

    /// Makes the profile's network and its guards, or mends what is missing of them, and makes room on
    /// the host for all nodes of the cluster. What it changed there is for the user to know.
    async fn network_up(&self, cluster: &Cluster) -> Result<Vec<Notice>>;

    /// Takes the network down. While the profile exists its addresses stay unreachable instead of
    /// being routed elsewhere; `forget` ends that too.
    async fn network_down(&self, profile: &str, forget: bool) -> Result<()>;

    /// Makes a machine with its disk and files, all or nothing. One that is there is left alone.
    async fn create(&self, spec: &MachineSpec) -> Result<()>;

    /// Writes the files of a machine that is there and does not run.
    async fn configure(&self, spec: &MachineSpec) -> Result<()>;

    /// Gives a machine that runs the size of `spec`, without a restart. The node itself is told apart.
    async fn resize(&self, spec: &MachineSpec) -> Result<()>;

    /// Starts the machine and connects it to the network. One that runs is only connected.
    async fn boot(&self, spec: &MachineSpec) -> Result<()>;

    /// Orderly first, by force after `grace`.
    async fn power_off(&self, machine: &str, grace: Duration) -> Result<()>;

    /// Removes the machine with all it has on disk; one that runs is killed.
    async fn remove(&self, machine: &str) -> Result<()>;

    async fn list(&self) -> Result<Vec<Machine>>;

    /// Does everything in the machine stand still? Nobody in it answers then.
    async fn is_frozen(&self, machine: &str) -> bool;

    /// Has this machine a cable? Where it leads to is the network's business.
    async fn is_connected(&self, machine: &str) -> Result<bool>;

    /// The profile's network and its guards are in place, and the machines that run are on it.
    async fn network_is_up(&self, cluster: &Cluster, running: &[String]) -> Result<bool>;

    /// Where no subnet of a new cluster may lie.
    async fn networks_in_use(&self) -> Result<Vec<Ipv4Net>>;

    /// Is this image where machines can be made of it?
    async fn has_image(&self, image: &NodeImage) -> Result<bool>;

    /// Brings an image of the store there.
    async fn bring_image(&self, image: &NodeImage, progress: Arc<LayerProgress>) -> Result<()>;

    /// Brings an image of a registry to the store; the digest that its name stands for there.
    async fn pull_image(
        &self,
        reference: &Reference,
        progress: Arc<LayerProgress>,
    ) -> Result<(NodeImage, String)>;

    fn freezer(&self) -> &dyn Freeze;

    /// A fresh byte stream to the agent of a machine that runs.
    async fn connect(&self, machine: &str) -> Result<Stream, NoStream>;
}

/// Why there is none.
#[derive(Debug, thiserror::Error)]
pub enum NoStream {
    #[error("machine {0} is not running")]
    NotRunning(String),
    #[error("machine {0} is frozen: nothing can run in it until it is thawed")]
    Frozen(String),
    /// It was booted by a version that had no channel.
    #[error("machine {0} was started by an earlier manykube: stop and start it")]
    Old(String),
    #[error("the agent of {machine} does not answer: {why}")]
    Silent { machine: String, why: String },
}

/// All that a driver needs to know of a node.
#[derive(Debug, Clone)]
pub struct MachineSpec {
    pub name: String,
    /// Whose network the machine is on.
    pub cluster: Cluster,
    pub ip: std::net::Ipv4Addr,
    pub image: NodeImage,
    pub cpus: u32,
    pub memory_mib: u32,
    /// Of a machine that is to have a disk of its own.
    pub disk_mib: Option<u32>,
    /// Placed before the first boot.
    pub files: Vec<NodeFile>,
    /// Of the host, to be seen in the node from its next boot on.
    pub binds: Vec<Bind>,
    /// Of the host, that lead to the node.
    pub ports: Vec<Port>,
    /// Of the node, that are to be reached at `listen` as well, where its own address may not be.
    pub forwarded: Vec<u16>,
    pub listen: std::net::Ipv4Addr,
}

/// A file or directory of the host at a place in the node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bind {
    pub host: PathBuf,
    pub node: String,
    pub read_only: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    pub name: String,
    /// Whose machine it is; unknown when its record is damaged.
    pub profile: Option<String>,
    pub state: MachineState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MachineState {
    Stopped,
    Running,
}

/// Something that a user should know although all went well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    Told(String),
    Warning(String),
}
