//! `worker`: seeds/003's command. A thin front of `node` for the nodes that are no control planes.

use anyhow::Result;
use model::Reason;

use super::node::{self, Among};
use super::node::{
    AllArgs, CreateArgs, DeleteArgs, DockerEnvArgs, LogsArgs, NameArgs, SetArgs, SshArgs, StartArgs,
    StatusArgs,
};
use crate::ctx::Ctx;

#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Clone, clap::Subcommand)]
pub enum Command {
    /// List the workers with their addresses and states
    List,
    /// Make a worker without starting it
    Create(CreateArgs),
    /// Start a worker; it is made if there is none of that name
    Start(StartArgs),
    /// Stop a worker; it keeps its state and its place in the cluster
    Stop(AllArgs),
    /// Change a worker that exists
    Set(SetArgs),
    /// Delete a worker
    Delete(DeleteArgs),
    /// Open a shell in a worker, or run a command there
    Ssh(SshArgs),
    /// Print how a docker client reaches a worker
    DockerEnv(DockerEnvArgs),
    /// Show the state of a worker, or of all
    Status(StatusArgs),
    /// Show the logs of a worker, or of all
    Logs(LogsArgs),
    /// Print the address of a worker
    Ip(NameArgs),
}

impl Command {
    fn as_node(&self) -> node::Command {
        match self.clone() {
            Command::List => node::Command::List,
            Command::Create(args) => node::Command::Create(args),
            Command::Start(args) => node::Command::Start(args),
            Command::Stop(args) => node::Command::Stop(args),
            Command::Set(args) => node::Command::Set(args),
            Command::Delete(args) => node::Command::Delete(args),
            Command::Ssh(args) => node::Command::Ssh(args),
            Command::DockerEnv(args) => node::Command::DockerEnv(args),
            Command::Status(args) => node::Command::Status(args),
            Command::Logs(args) => node::Command::Logs(args),
            Command::Ip(args) => node::Command::Ip(args),
        }
    }
}

pub fn default_reason(command: &Command) -> Reason {
    node::default_reason(&command.as_node())
}

pub fn run(ctx: &Ctx, args: &Args) -> Result<u8> {
    node::perform(ctx, &args.command.as_node(), Among::Workers)
}
