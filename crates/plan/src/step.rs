//! The words a plan is written in.

use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    pub phases: Vec<Phase>,
}

/// What a person is told while a phase runs.
pub mod phase {
    pub const IMAGE: &str = "Building the node image";
    pub const GROUND: &str = "Preparing certificates and network";
    pub const MACHINES: &str = "Creating machines";
    pub const BOOT: &str = "Booting machines";
    pub const CONTROL_PLANE: &str = "Booting the control plane";
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
    BootMachine(String),
    WaitApi(String),
    /// kubeadm's records in the cluster: configuration, tokens.
    UploadConfig,
    /// kube-proxy, DNS, storage.
    Addons,
    /// All of the above is done: the next start need not look at each of it.
    MarkConfigured,
    /// Controller manager and scheduler, held back while the API server starts.
    ReleaseControllers(String),
    /// Leases of controllers that died with a machine: nobody has to wait for their end.
    ClearLeases,
    /// Labels and pod range of the Node object.
    AdoptNode(String),
    WaitNode(String),
    WaitSystem,

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
            Step::BuildImage => "build the node image",
            Step::Certificates => "make certificates",
            Step::NetworkUp => "make the network",
            Step::CreateMachine(_) => "create the machine",
            Step::BootMachine(_) => "boot",
            Step::WaitApi(_) => "wait for the API server",
            Step::UploadConfig => "record kubeadm's configuration",
            Step::Addons => "apply kube-proxy, DNS and storage",
            Step::MarkConfigured => "mark the cluster as set up",
            Step::ReleaseControllers(_) => "start the controllers",
            Step::ClearLeases => "clear leases of the last run",
            Step::AdoptNode(_) => "label the node and give it its pod range",
            Step::WaitNode(_) => "wait until the node is Ready",
            Step::WaitSystem => "wait for DNS and the system pods",
            Step::PowerOff(_) => "power off",
            Step::NetworkDown => "take the network down",
            Step::RemoveMachine(_) => "remove the machine",
            Step::ForgetNetwork => "remove the network",
        }
    }

    pub fn node(&self) -> Option<&str> {
        match self {
            Step::CreateMachine(n)
            | Step::BootMachine(n)
            | Step::WaitApi(n)
            | Step::ReleaseControllers(n)
            | Step::AdoptNode(n)
            | Step::WaitNode(n)
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
