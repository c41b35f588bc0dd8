//! The command lines of `node`, which `worker` shares.

use clap::ArgAction;
use model::{Fault, Reason};

use super::Among;
use crate::args::node_flags::NodeFlags;
use crate::args::values::go_bool;
use crate::commands::{docker_env, logs, status};

#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Clone, clap::Subcommand)]
pub enum Command {
    /// List the nodes and their addresses
    List,
    /// Add nodes to a running cluster
    Add(AddArgs),
    /// Make a worker without starting it
    Create(CreateArgs),
    /// Start a node that was stopped; with options, change it first
    Start(StartArgs),
    /// Stop a node; it keeps its disk, and a control plane leaves etcd and joins again at its start
    Stop(AllArgs),
    /// Change a node that exists: live where that is possible, else by a restart of it
    Set(SetArgs),
    /// Remove a node from the cluster, and its machine
    Delete(DeleteArgs),
    /// Open a shell in a node, or run a command there
    Ssh(SshArgs),
    /// Print how a docker client reaches a node
    DockerEnv(DockerEnvArgs),
    /// Show the state of a node, or of all
    Status(StatusArgs),
    /// Show the logs of a node, or of all
    Logs(LogsArgs),
    /// Print the address of a node
    Ip(NameArgs),
}

#[derive(Debug, Clone, Default, clap::Args)]
pub struct NameArgs {
    /// m02, or the machine's name
    #[arg(value_name = "NAME")]
    pub node: Option<String>,
    /// The same as a flag
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
}

#[derive(Debug, Clone, clap::Args)]
pub struct DockerEnvArgs {
    #[command(flatten)]
    pub name: NameArgs,
    #[command(flatten)]
    pub view: docker_env::View,
}

#[derive(Debug, Clone, clap::Args)]
pub struct AddArgs {
    #[command(flatten)]
    pub name: NameArgs,
    /// Make it a control plane
    #[arg(long)]
    pub control_plane: bool,
    /// Let it run workloads, as all nodes do
    #[arg(
        long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true,
        default_value = "true", default_missing_value = "true", value_parser = go_bool
    )]
    pub worker: bool,
    /// How many
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub count: u32,
    /// How it joins
    #[arg(long, value_name = "HOW", value_enum, default_value_t)]
    pub join: Join,
    /// Remove what did not come up
    #[arg(long)]
    pub delete_on_failure: bool,
    #[command(flatten)]
    pub flags: NodeFlags,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Join {
    /// With all that it needs put in its place before it boots: the fastest
    #[default]
    Direct,
    /// By `kubeadm join` in the node, as on any host
    Kubeadm,
}

#[derive(Debug, Clone, clap::Args)]
pub struct CreateArgs {
    #[command(flatten)]
    pub name: NameArgs,
    #[command(flatten)]
    pub flags: NodeFlags,
}

#[derive(Debug, Clone, clap::Args)]
pub struct AllArgs {
    #[command(flatten)]
    pub name: NameArgs,
    /// All of them
    #[arg(long)]
    pub all: bool,
}

#[derive(Debug, Clone, clap::Args)]
pub struct StartArgs {
    #[command(flatten)]
    pub which: AllArgs,
    /// Remove the node if it does not come up
    #[arg(long)]
    pub delete_on_failure: bool,
    #[command(flatten)]
    pub flags: NodeFlags,
}

const REMOVAL: &str = "What ends in - is removed: --labels tier-, --taints gpu-, --extra-config kubelet.max-pods-, \
                       --feature-gates NAME-, --mount /in/the/node-, --ports 8080-, and --kubelet-binary= (empty).";

#[derive(Debug, Clone, clap::Args)]
#[command(after_help = REMOVAL)]
pub struct SetArgs {
    #[command(flatten)]
    pub name: NameArgs,
    #[command(flatten)]
    pub flags: NodeFlags,
}

#[derive(Debug, Clone, clap::Args)]
pub struct DeleteArgs {
    #[command(flatten)]
    pub name: NameArgs,
    /// Do not wait for the API; etcd still has to let a control plane go
    #[arg(long)]
    pub force: bool,
}

#[derive(Debug, Clone, clap::Args)]
pub struct SshArgs {
    /// m02, or the machine's name
    #[arg(value_name = "NAME")]
    pub node: Option<String>,
    /// The command; a shell if left out
    pub command: Vec<String>,
}

#[derive(Debug, Clone, clap::Args)]
pub struct StatusArgs {
    #[command(flatten)]
    pub name: NameArgs,
    #[command(flatten)]
    pub view: status::View,
}

#[derive(Debug, Clone, clap::Args)]
pub struct LogsArgs {
    #[command(flatten)]
    pub name: NameArgs,
    #[command(flatten)]
    pub view: logs::View,
}

impl SshArgs {
    pub fn name(&self) -> NameArgs {
        NameArgs { node: self.node.clone(), name: None }
    }
}

impl NameArgs {
    pub fn get(&self) -> Result<Option<&str>, Fault> {
        match (self.node.as_deref(), self.name.as_deref()) {
            (Some(a), Some(b)) if a != b => {
                Err(Fault::new(Reason::Usage, format!("Two names are given: {a} and {b}")))
            }
            (a, b) => Ok(a.or(b).filter(|n| !n.is_empty())),
        }
    }

    pub fn require(&self, among: Among, verb: &str) -> Result<&str, Fault> {
        self.get()?.ok_or_else(|| missing(among, verb, "NAME"))
    }
}

impl AllArgs {
    /// The name; `None` for all.
    pub fn get(&self, among: Among, verb: &str) -> Result<Option<&str>, Fault> {
        match (self.name.get()?, self.all) {
            (Some(name), true) => {
                Err(Fault::new(Reason::Usage, format!("Either {name} or --all is meant, not both")))
            }
            (None, false) => Err(missing(among, verb, "NAME|--all")),
            (name, _) => Ok(name),
        }
    }
}

fn missing(among: Among, verb: &str, what: &str) -> Fault {
    let noun = among.noun();
    Fault::new(Reason::Usage, format!("Usage: {noun} {verb} {what}: the name of a {noun} is missing"))
}
