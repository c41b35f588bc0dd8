//! `node`: the nodes of a cluster, one by one.

use std::time::Duration;

use anyhow::Result;
use clap::ArgAction;
use model::config_file::ConfigFile;
use model::status::Apiserver;
use model::{Cluster, Fault, Node, Reason, names};
use plan::Leave;

use super::{cluster as common, print};
use crate::args::values::go_bool;
use crate::core::{self, Started};
use crate::ctx::Ctx;
use crate::host;
use crate::report::{Event, Style};
use crate::state::lock::ProfileLock;
use crate::state::profile;

/// As long as `start` waits by default.
const WAIT: Duration = Duration::from_secs(360);
/// More at once is a slip of the keyboard; the network ends at 252 anyway.
const MOST: u32 = 250;

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
    /// Remove a node from the cluster, and its machine
    Delete(DeleteArgs),
    /// Start a node that was stopped
    Start(StartArgs),
    /// Stop a node; a control plane leaves etcd and joins again at its start
    Stop(NameArgs),
}

#[derive(Debug, Clone, clap::Args)]
pub struct NameArgs {
    /// m02, or the machine's name
    #[arg(value_name = "NAME")]
    pub node: Option<String>,
    /// The same as a flag
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
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
    /// Remove what did not come up
    #[arg(long)]
    pub delete_on_failure: bool,
}

#[derive(Debug, Clone, clap::Args)]
pub struct StartArgs {
    #[command(flatten)]
    pub name: NameArgs,
    /// Remove the node if it does not come up
    #[arg(long)]
    pub delete_on_failure: bool,
}

#[derive(Debug, Clone, clap::Args)]
pub struct DeleteArgs {
    #[command(flatten)]
    pub name: NameArgs,
    /// Remove it also when etcd loses its majority by it
    #[arg(long)]
    pub force: bool,
}

impl NameArgs {
    fn get(&self) -> Result<Option<&str>, Fault> {
        match (self.node.as_deref(), self.name.as_deref()) {
            (Some(a), Some(b)) if a != b => {
                Err(Fault::new(Reason::Usage, format!("Two names are given: {a} and {b}")))
            }
            (a, b) => Ok(a.or(b).filter(|n| !n.is_empty())),
        }
    }

    fn require(&self, verb: &str) -> Result<&str, Fault> {
        self.get()?.ok_or_else(|| {
            Fault::new(Reason::Usage, format!("Usage: node {verb} NAME: the name of a node is missing"))
        })
    }
}

pub fn default_reason(command: &Command) -> Reason {
    match command {
        Command::List => Reason::Internal,
        Command::Add(_) => Reason::NodeAdd,
        Command::Delete(_) => Reason::NodeDelete,
        Command::Start(_) => Reason::NodeStart,
        Command::Stop(_) => Reason::NodeStop,
    }
}

pub fn run(ctx: &Ctx, args: &Args) -> Result<u8> {
    match &args.command {
        Command::List => {
            let cluster = common::load(ctx)?;
            let lines = cluster.nodes.iter().map(|n| format!("{}\t{}\n", cluster.machine(n), n.ip));
            print(&lines.collect::<String>());
        }
        Command::Add(args) => {
            wanted(&common::load(ctx)?, args)?;
            ctx.run(add(ctx, args))?;
        }
        Command::Delete(args) => {
            let name = args.name.require("delete")?;
            find(&common::load(ctx)?, name, Reason::NodeDelete)?;
            ctx.run(delete(ctx, name, args.force))?;
        }
        Command::Start(args) => {
            let name = args.name.require("start")?;
            find(&common::load(ctx)?, name, Reason::NodeRetrieve)?;
            ctx.run(start(ctx, name, args.delete_on_failure))?;
        }
        Command::Stop(args) => {
            let name = args.require("stop")?;
            find(&common::load(ctx)?, name, Reason::NodeRetrieve)?;
            ctx.run(stop(ctx, name))?;
        }
    }
    Ok(0)
}

fn find(cluster: &Cluster, name: &str, reason: Reason) -> Result<Node, Fault> {
    common::node(cluster, Some(name)).cloned().map_err(|fault| Fault { reason, ..fault })
}

/// What a node is called in messages.
fn shown(cluster: &Cluster, node: &Node) -> String {
    if node.name.is_empty() { cluster.machine(node) } else { node.name.clone() }
}

/// The nodes that are to be added, as the flags ask.
fn wanted(cluster: &Cluster, args: &AddArgs) -> Result<Vec<Node>, Fault> {
    let usage = |message: String| Fault::new(Reason::Usage, message);
    let name = args.name.get()?;
    if !args.worker && !args.control_plane {
        return Err(usage("A node that is neither a worker nor a control plane would do nothing".to_owned()));
    }
    if !(1..=MOST).contains(&args.count) {
        return Err(usage(format!("--count must be between 1 and {MOST}")));
    }
    if let Some(name) = name {
        if args.count > 1 {
            return Err(usage(format!("{} nodes cannot all be named {name}", args.count)));
        }
        if !names::is_valid_node(name) {
            return Err(usage(format!(
                "{name:?} is no name for a node: lower-case letters, digits and dashes, and not m01"
            )));
        }
        if cluster.find_node(name).is_some() {
            return Err(usage(format!("The cluster {:?} has a node {name} already", cluster.name)));
        }
    }
    let mut grown = cluster.clone();
    let mut new = Vec::new();
    for _ in 0..args.count {
        let full = || usage(format!("{} has no room for {} more nodes", cluster.network.subnet, args.count));
        let node = grown.next_node(name, args.control_plane).ok_or_else(full)?;
        grown.nodes.push(node.clone());
        new.push(node);
    }
    Ok(new)
}

/// A machine may not bear the name of another profile, or of a machine of one.
fn names_are_free(ctx: &Ctx, cluster: &Cluster, new: &[Node]) -> Result<(), Fault> {
    for (other, file) in profile::list(&ctx.home)? {
        if other == cluster.name {
            continue;
        }
        let theirs: Vec<String> = match &file {
            Ok(file) => file.cluster.nodes.iter().map(|n| file.cluster.machine(n)).collect(),
            Err(_) => Vec::new(),
        };
        let machines = new.iter().map(|n| cluster.machine(n));
        if let Some(machine) = machines.into_iter().find(|m| *m == other || theirs.contains(m)) {
            return Err(Fault::new(
                Reason::NodeAdd,
                format!("The name {machine} is taken by the cluster {other:?}"),
            )
            .advice("Name the node with --name"));
        }
    }
    Ok(())
}

/// Nodes come and go in a cluster whose API answers.
async fn require_healthy(ctx: &Ctx, cluster: &Cluster) -> Result<()> {
    let seen = common::require_running(ctx, cluster).await?;
    if seen.iter().any(|s| s.apiserver == Apiserver::Running) {
        return Ok(());
    }
    let message = format!("The API server of the cluster \"{}\" does not answer", cluster.name);
    Err(Fault::new(Reason::ApiserverNotRunning, message)
        .advice(format!("Run '{}' first", ctx.hint("start")))
        .into())
}

async fn add(ctx: &Ctx, args: &AddArgs) -> Result<()> {
    let _lock = ProfileLock::acquire(ctx, &ctx.profile).await?;
    let file = profile::require(&ctx.home, &ctx.profile)?;
    let new = wanted(&file.cluster, args)?;
    names_are_free(ctx, &file.cluster, &new)?;
    require_healthy(ctx, &file.cluster).await?;
    let mut cluster = file.cluster.clone();
    cluster.nodes.extend(new.iter().cloned());
    cluster.share_memory(file.cluster.nodes.len(), host::size().memory_mib);
    core::room(ctx, &cluster, false).await?.into_iter().for_each(|w| ctx.warn(w));
    let machines: Vec<String> = new.iter().map(|n| cluster.machine(n)).collect();

    let roles = match (args.worker, args.control_plane) {
        (true, true) => "worker control-plane",
        (false, true) => "control-plane",
        _ => "worker",
    };
    let role = if args.control_plane { "control-plane" } else { "worker" };
    for (node, machine) in new.iter().zip(&machines) {
        let message =
            format!("Adding node {} to cluster {} as [{roles}]", shown(&cluster, node), cluster.name);
        ctx.emit(Event::info(Style::Happy, message));
        let message = format!("Starting \"{machine}\" {role} node in \"{}\" cluster", cluster.name);
        ctx.emit(Event::info(Style::Starting, message));
    }
    if args.control_plane {
        super::start::desired::even(&cluster).into_iter().for_each(|w| ctx.warn(w));
    }
    profile::save(&ctx.home, &cluster, Some(&file.raw))?;
    if let Err(error) = core::add(ctx, &cluster, &machines, WAIT).await {
        if args.delete_on_failure && !ctx.cancel.is_cancelled() {
            for node in new.iter().rev() {
                let file = profile::require(&ctx.home, &ctx.profile)?;
                remove(ctx, &file, node, true).await?;
            }
        }
        return Err(error);
    }
    point_kubeconfig(ctx, &file.cluster, &cluster)?;
    for node in &new {
        let message = format!("Successfully added {} to {}!", shown(&cluster, node), cluster.name);
        ctx.emit(Event::info(Style::Ready, message));
    }
    Ok(())
}

/// The API's address changes when the second control plane comes or goes.
fn point_kubeconfig(ctx: &Ctx, before: &Cluster, after: &Cluster) -> Result<(), Fault> {
    if core::server(before) != core::server(after) {
        common::write_kubeconfig(ctx, after, false)?;
    }
    Ok(())
}

async fn delete(ctx: &Ctx, name: &str, force: bool) -> Result<()> {
    let _lock = ProfileLock::acquire(ctx, &ctx.profile).await?;
    let file = profile::require(&ctx.home, &ctx.profile)?;
    let node = find(&file.cluster, name, Reason::NodeDelete)?;
    if !force {
        require_healthy(ctx, &file.cluster).await?;
    }
    let shown = shown(&file.cluster, &node);
    ctx.emit(Event::info(
        Style::Deleting,
        format!("Deleting node {shown} from cluster {}", file.cluster.name),
    ));
    remove(ctx, &file, &node, force).await?;
    ctx.emit(Event::info(Style::Deleted, format!("Node {shown} was successfully deleted.")));
    Ok(())
}

/// The record of it goes last.
pub async fn remove(ctx: &Ctx, file: &ConfigFile, node: &Node, force: bool) -> Result<()> {
    let cluster = &file.cluster;
    core::leave(ctx, cluster, node, Leave::Delete, force).await?;
    let mut after = cluster.clone();
    after.nodes.retain(|n| n.name != node.name);
    profile::save(&ctx.home, &after, Some(&file.raw))?;
    let certificates = ctx.home.profile(&cluster.name).join("pki/nodes").join(cluster.machine(node));
    let _ = std::fs::remove_dir_all(certificates);
    Ok(point_kubeconfig(ctx, cluster, &after)?)
}

async fn start(ctx: &Ctx, name: &str, delete_on_failure: bool) -> Result<()> {
    let _lock = ProfileLock::acquire(ctx, &ctx.profile).await?;
    let file = profile::require(&ctx.home, &ctx.profile)?;
    let cluster = &file.cluster;
    let node = find(cluster, name, Reason::NodeRetrieve)?;
    require_healthy(ctx, cluster).await?;
    let role = if node.control_plane { "control-plane" } else { "worker" };
    let machine = cluster.machine(&node);
    ctx.emit(Event::info(
        Style::Starting,
        format!("Starting \"{machine}\" {role} node in \"{}\" cluster", cluster.name),
    ));
    let message = match core::add(ctx, cluster, &[machine], WAIT).await {
        Ok(Started::AlreadyRunning) => format!("{} is already running", shown(cluster, &node)),
        Ok(Started::Changed) => format!("Successfully started node {}!", shown(cluster, &node)),
        Err(error) => {
            if delete_on_failure && !ctx.cancel.is_cancelled() {
                remove(ctx, &file, &node, true).await?;
            }
            return Err(error);
        }
    };
    ctx.emit(Event::info(Style::Ready, message));
    Ok(())
}

async fn stop(ctx: &Ctx, name: &str) -> Result<()> {
    let _lock = ProfileLock::acquire(ctx, &ctx.profile).await?;
    let cluster = common::load(ctx)?;
    let node = find(&cluster, name, Reason::NodeRetrieve)?;
    ctx.emit(Event::info(Style::Stopping, format!("Stopping node \"{}\"  ...", cluster.machine(&node))));
    core::leave(ctx, &cluster, &node, Leave::Stop, false).await?;
    ctx.emit(Event::info(Style::Stopped, format!("Successfully stopped node {}", shown(&cluster, &node))));
    Ok(())
}
