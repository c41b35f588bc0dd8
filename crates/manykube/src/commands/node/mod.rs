//! `node`: the nodes of a cluster, one by one. `worker` is the same for nodes that are no control planes.

mod add;
mod among;
mod args;
mod change;
mod delete;
mod logs;
mod look;
mod set;
mod start;
mod stop;
mod wanted;

use std::time::Duration;

use anyhow::Result;
use model::config_file::ConfigFile;
use model::{Cluster, Node, Reason};

use super::cluster as common;
use crate::ctx::Ctx;
use crate::state::pending::{self, Pending};
pub use among::Among;
pub use args::{
    AllArgs, Args, Command, CreateArgs, DeleteArgs, DockerEnvArgs, LogsArgs, NameArgs, SetArgs, SshArgs,
    StartArgs, StatusArgs,
};
pub use delete::remove;
use wanted::Request;

/// As long as `start` waits by default.
const WAIT: Duration = Duration::from_secs(360);

pub fn default_reason(command: &Command) -> Reason {
    match command {
        Command::Add(_) | Command::Create(_) => Reason::NodeAdd,
        Command::Delete(_) => Reason::NodeDelete,
        Command::Start(_) | Command::Set(_) => Reason::NodeStart,
        Command::Stop(_) => Reason::NodeStop,
        Command::Status(_) => Reason::GuestStatus,
        _ => Reason::Internal,
    }
}

pub fn run(ctx: &Ctx, args: &Args) -> Result<u8> {
    perform(ctx, &args.command, Among::All)
}

/// What is wrong with the command itself is said before anything is locked.
pub fn perform(ctx: &Ctx, command: &Command, among: Among) -> Result<u8> {
    let named = |name: &NameArgs, verb: &str, reason: Reason| {
        let name = name.require(among, verb)?;
        among.find(ctx, &common::load(ctx)?, name, reason).map(|_| name.to_owned())
    };
    match command {
        Command::List => look::list(ctx, among)?,
        Command::Add(args) => {
            let request = Request::add(args)?;
            could(ctx, &request)?;
            ctx.run(add::add(ctx, &request))?;
        }
        Command::Create(args) => {
            let request = Request::create(args)?;
            could(ctx, &request)?;
            ctx.run(add::create(ctx, &request, among))?;
        }
        Command::Delete(args) => {
            let name = named(&args.name, "delete", Reason::NodeDelete)?;
            ctx.run(delete::delete(ctx, &name, args.force))?;
        }
        Command::Start(args) => start::run(ctx, args, among)?,
        Command::Stop(args) => return stop::run(ctx, args, among),
        Command::Set(args) => {
            let edit = set::asked(&args.flags, among)?;
            let name = named(&args.name, "set", Reason::NodeRetrieve)?;
            ctx.run(set::set(ctx, &name, &edit))?;
        }
        Command::Ssh(args) => {
            let name = named(&args.name(), "ssh", Reason::NodeRetrieve)?;
            return super::ssh::enter(ctx, Some(&name), &args.command);
        }
        Command::Ip(args) => {
            let name = named(args, "ip", Reason::NodeRetrieve)?;
            return super::ip::show(ctx, Some(&name));
        }
        Command::DockerEnv(args) => {
            let name = named(&args.name, "docker-env", Reason::NodeRetrieve)?;
            return super::docker_env::print(ctx, Some(&name), &args.view);
        }
        Command::Status(args) => return look::status(ctx, args, among),
        Command::Logs(args) => return logs::run(ctx, args, among),
    }
    Ok(0)
}

/// Is there room for these, under these names?
fn could(ctx: &Ctx, request: &Request) -> Result<(), model::Fault> {
    let cluster = common::load(ctx)?;
    request.nodes(&cluster, &pending::unfinished(&ctx.home, &cluster, Pending::Adding)).map(drop)
}

/// What a node is called in messages.
fn shown(cluster: &Cluster, node: &Node) -> String {
    if node.name.is_empty() { cluster.machine(node) } else { node.name.clone() }
}

fn role(node: &Node) -> &'static str {
    if node.control_plane { "control-plane" } else { "worker" }
}

fn load(ctx: &Ctx) -> Result<ConfigFile> {
    Ok(crate::state::profile::require(&ctx.home, &ctx.profile)?)
}
