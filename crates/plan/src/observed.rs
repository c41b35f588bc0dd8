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
    /// What is known on the host of its place in etcd (control planes).
    pub membership: Membership,
}

/// A hint from the host's notes and the node's disk. Only etcd itself says who is a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Membership {
    /// It has etcd's data, and no note says otherwise.
    Joined,
    /// A command that adds or removes this member was cut short. The node has etcd's data and may be a voter.
    Unsure,
    /// etcd confirmed that it is no member. What it has of etcd's data is old.
    Left,
    /// It has no data of etcd, but may still be on etcd's list.
    Lost,
}

impl Membership {
    /// Its data may be needed for a majority.
    pub fn may_vote(self) -> bool {
        matches!(self, Membership::Joined | Membership::Unsure)
    }
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
            membership: Membership::Joined,
        }
    }
}
