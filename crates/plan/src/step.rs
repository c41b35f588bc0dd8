//! The words a plan is written in.

use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    pub phases: Vec<Phase>,
}

/// What a person is told while a phase runs.
pub mod phase {
    pub const IMAGE: &str = "Preparing the node image";
    pub const GROUND: &str = "Preparing certificates and network";
    pub const PEERS: &str = "Telling the nodes of each other";
    pub const JOIN: &str = "Joining the control plane";
    pub const LEAVE: &str = "Leaving the cluster";
    pub const RECOVER: &str = "Recovering etcd";
    pub const MACHINES: &str = "Creating machines";
    pub const CHANGE: &str = "Changing nodes";
    pub const BOOT: &str = "Booting machines";
    pub const CONTROL_PLANE: &str = "Booting the control plane";
    pub const IMAGES: &str = "Loading images";
    pub const CONFIGURE: &str = "Configuring the cluster";
    pub const VERIFY: &str = "Verifying that all is ready";
    pub const POWER_OFF: &str = "Powering off";
    pub const REMOVE: &str = "Removing machines";
    pub const HOST: &str = "Cleaning up the host";
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phase {
    pub name: &'static str,
    /// Need nothing of each other: they run in parallel.
    pub steps: Vec<Step>,
}

/// Nodes are named by machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    BuildImage,
    Certificates,
    NetworkUp,
    CreateMachine(String),
    /// Other files in a machine that does not run.
    Configure(String),
    /// Another size for a machine that runs.
    Resize(String),
    BootMachine(String),
    /// An API server that was held back while the first one had the machine to itself.
    ReleaseApi(String),
    WaitApi(String),
    /// Images that were loaded into the cluster while this node was not there.
    PutImages(String),
    /// Images that the cluster file names.
    LoadImages,
    /// kubeadm's records in the cluster: configuration, tokens.
    UploadConfig,
    /// kube-proxy, DNS, storage.
    Addons,
    /// The objects of a pod network that is not ours.
    PodNetwork,
    /// The user's own objects.
    Manifests,
    /// All of the above is done: the next start need not look at each of it.
    MarkConfigured,
    /// Controller manager and scheduler, held back while the API server starts.
    ReleaseControllers(String),
    /// Leases of controllers that died with a machine: nobody has to wait for their end.
    ClearLeases,
    /// Labels and pod range of the Node object.
    AdoptNode(String),
    /// Makes a kubelet whose Node object was deleted make a new one.
    Register(String),
    WaitNode(String),
    WaitSystem,

    /// Who else is there, in a machine that exists, running or not.
    Peers(String),
    /// Another certificate for the API server of a control plane, which takes it up as it runs.
    Certify(String),
    /// A control plane that joins, first as a learner of etcd. A machine that is there keeps all it has but etcd's
    /// data; one that etcd has as a member with its data stays as it is.
    CreateMember(String),
    /// Makes the learner a voter once it has caught up.
    PromoteMember(String),
    /// Moves pods elsewhere, for a bounded time.
    Drain(String),
    /// Takes the control plane out of etcd; from here on its machine has to join again.
    RemoveMember(String),
    /// The Node object and the pods that were on it.
    DeleteNode(String),

    /// Another control plane's copy of etcd's data serves now: this one has to join again.
    NoteLeft(String),
    /// Makes an etcd of one member from the data of this control plane.
    RecoverEtcd(String),

    PowerOff(String),
    NetworkDown,
    RemoveMachine(String),
    ForgetNetwork,
}

impl Plan {
    pub fn is_empty(&self) -> bool {
        self.phases.is_empty()
    }

    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        self.phases.iter().flat_map(|p| &p.steps)
    }

    /// A phase without steps is none.
    pub(crate) fn phase(mut self, name: &'static str, steps: Vec<Step>) -> Plan {
        if !steps.is_empty() {
            self.phases.push(Phase { name, steps });
        }
        self
    }
}

impl Step {
    /// What is done, in words for a person; the node is said apart.
    pub fn title(&self) -> &'static str {
        match self {
            Step::BuildImage => "prepare the node image",
            Step::Certificates => "make certificates",
            Step::NetworkUp => "make the network",
            Step::CreateMachine(_) => "create the machine",
            Step::Configure(_) => "write its configuration",
            Step::Resize(_) => "change its size",
            Step::BootMachine(_) => "boot",
            Step::ReleaseApi(_) => "start the API server",
            Step::WaitApi(_) => "wait for the API server",
            Step::PutImages(_) => "put the loaded images there",
            Step::LoadImages => "load the images of the file",
            Step::UploadConfig => "record kubeadm's configuration",
            Step::Addons => "apply kube-proxy, DNS and storage",
            Step::PodNetwork => "apply the manifest of the pod network",
            Step::Manifests => "apply the manifests",
            Step::MarkConfigured => "mark the cluster as set up",
            Step::ReleaseControllers(_) => "start the controllers",
            Step::ClearLeases => "clear leases of the last run",
            Step::AdoptNode(_) => "label the node and give it its pod range",
            Step::Register(_) => "make the kubelet register anew",
            Step::WaitNode(_) => "wait until the node is Ready",
            Step::WaitSystem => "wait for DNS and the system pods",
            Step::Peers(_) => "write the list of nodes",
            Step::Certify(_) => "give the API server its certificate",
            Step::NoteLeft(_) => "give up its copy of etcd",
            Step::RecoverEtcd(_) => "make a new etcd of its data",
            Step::CreateMember(_) => "create the machine as a learner of etcd",
            Step::PromoteMember(_) => "wait for etcd and vote",
            Step::Drain(_) => "move pods elsewhere",
            Step::RemoveMember(_) => "leave etcd",
            Step::DeleteNode(_) => "remove the node from the API",
            Step::PowerOff(_) => "power off",
            Step::NetworkDown => "take the network down",
            Step::RemoveMachine(_) => "remove the machine",
            Step::ForgetNetwork => "remove the network",
        }
    }

    /// The same in every run and version, for programs: `boot/minikube-m02`.
    pub fn id(&self) -> String {
        let word = match self {
            Step::BuildImage => "build-image",
            Step::Certificates => "certificates",
            Step::NetworkUp => "network-up",
            Step::CreateMachine(_) => "create",
            Step::Configure(_) => "configure",
            Step::Resize(_) => "resize",
            Step::BootMachine(_) => "boot",
            Step::ReleaseApi(_) => "release-api",
            Step::WaitApi(_) => "wait-api",
            Step::PutImages(_) => "put-images",
            Step::LoadImages => "load-images",
            Step::UploadConfig => "upload-config",
            Step::Addons => "addons",
            Step::PodNetwork => "pod-network",
            Step::Manifests => "manifests",
            Step::MarkConfigured => "mark-configured",
            Step::ReleaseControllers(_) => "release-controllers",
            Step::ClearLeases => "clear-leases",
            Step::AdoptNode(_) => "adopt",
            Step::Register(_) => "register",
            Step::WaitNode(_) => "wait-node",
            Step::WaitSystem => "wait-system",
            Step::Peers(_) => "peers",
            Step::Certify(_) => "certify",
            Step::NoteLeft(_) => "note-left",
            Step::RecoverEtcd(_) => "recover-etcd",
            Step::CreateMember(_) => "create-member",
            Step::PromoteMember(_) => "promote-member",
            Step::Drain(_) => "drain",
            Step::RemoveMember(_) => "remove-member",
            Step::DeleteNode(_) => "delete-node",
            Step::PowerOff(_) => "power-off",
            Step::NetworkDown => "network-down",
            Step::RemoveMachine(_) => "remove",
            Step::ForgetNetwork => "forget-network",
        };
        self.node().map_or_else(|| word.to_owned(), |node| format!("{word}/{node}"))
    }

    pub fn node(&self) -> Option<&str> {
        match self {
            Step::CreateMachine(n)
            | Step::Configure(n)
            | Step::Resize(n)
            | Step::BootMachine(n)
            | Step::ReleaseApi(n)
            | Step::WaitApi(n)
            | Step::PutImages(n)
            | Step::ReleaseControllers(n)
            | Step::AdoptNode(n)
            | Step::Register(n)
            | Step::WaitNode(n)
            | Step::Certify(n)
            | Step::NoteLeft(n)
            | Step::RecoverEtcd(n)
            | Step::Peers(n)
            | Step::CreateMember(n)
            | Step::PromoteMember(n)
            | Step::Drain(n)
            | Step::RemoveMember(n)
            | Step::DeleteNode(n)
            | Step::PowerOff(n)
            | Step::RemoveMachine(n) => Some(n),
            _ => None,
        }
    }
}

/// As `--dry-run` prints it.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return write!(f, "nothing to do");
        }
        for (index, phase) in self.phases.iter().enumerate() {
            let end = if index + 1 == self.phases.len() { "" } else { "\n" };
            let steps: Vec<String> = phase
                .steps
                .iter()
                .map(|s| match s.node() {
                    Some(node) => format!("{} ({node})", s.title()),
                    None => s.title().to_owned(),
                })
                .collect();
            write!(f, "{:2}. {}: {}{end}", index + 1, phase.name, steps.join("; "))?;
        }
        Ok(())
    }
}
