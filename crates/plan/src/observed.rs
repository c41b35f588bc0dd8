//! What is there, as far as a plan depends on it.

use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    pub image: Image,
    /// Certificates of the profile exist and are good for a while.
    pub certificates: bool,
    /// The profile's network and its guards are in place.
    pub network: bool,
    /// By machine name: every machine of the profile, also ones that are not wanted any more.
    pub nodes: BTreeMap<String, ObservedNode>,
    /// The cluster as a whole is set up: kubeadm's records and all addons.
    pub configured: bool,
    /// The user's manifests are applied as they are by now; also when there are none.
    pub manifests: bool,
    /// Images that the cluster file names are loaded; also when it names none.
    pub images: bool,
    /// Images were loaded: a node that comes gets them.
    pub loaded: bool,
    /// All that `--wait` asks for beyond the nodes is true.
    pub system_ready: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Image {
    Present,
    Absent,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedNode {
    pub machine: MachineState,
    /// Its agent has its network and its kubelet runs.
    pub up: bool,
    /// The API server of this node (control planes).
    pub api: Api,
    /// Its API server waits to be let go (control planes).
    pub held: bool,
    /// Controller manager and scheduler are told to run (control planes).
    pub controllers: bool,
    /// The Node object has our labels and its pod range.
    pub adopted: bool,
    /// The API has a Node object of it, or cannot be asked.
    pub registered: bool,
    pub ready: bool,
    /// Its list of nodes is the one that is wanted.
    pub peers: bool,
    /// It has the images that were loaded into the cluster.
    pub images: bool,
    /// How far its machine is from what the configuration says by now.
    pub setup: Setup,
    /// Its API server's certificate is the one that is wanted (control planes).
    pub api_certificate: bool,
    /// A control plane's machine that is no member of etcd: it left, or has not quite joined.
    pub outside: bool,
    /// A member of etcd whose data is gone: it is outside as well.
    pub bereft: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MachineState {
    Absent,
    Stopped,
    Running,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Setup {
    AsWanted,
    /// Its size is another one, which can be changed while it runs.
    OtherSize,
    /// It has to restart with other files.
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    Down,
    /// Answers the administrator, but not yet everybody.
    Serving,
    Ready,
}

impl ObservedNode {
    pub fn absent() -> ObservedNode {
        ObservedNode {
            machine: MachineState::Absent,
            up: false,
            api: Api::Down,
            held: false,
            controllers: false,
            adopted: false,
            registered: true,
            ready: false,
            peers: true,
            images: false,
            setup: Setup::AsWanted,
            api_certificate: true,
            outside: false,
            bereft: false,
        }
    }
}
