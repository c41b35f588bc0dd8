//! Nodes that are there come up; with options, as something else than before.

use anyhow::Result;
use model::{Cluster, Fault, Node, Reason};

use super::args::StartArgs;
use super::wanted::Request;
use super::{Among, WAIT, add, change, common, load, remove, role, shown};
use crate::args::node_flags::Edit;
use crate::commands::fault;
use crate::core::{self, Started};
use crate::ctx::Ctx;
use crate::host;
use crate::report::{Event, Style};
use crate::state::lock::ProfileLock;
use crate::state::{pending, profile};

pub fn run(ctx: &Ctx, args: &StartArgs, among: Among) -> Result<()> {
    let name = args.which.get(among, "start")?;
    let edit = args.flags.edit(host::size())?;
    let cluster = common::load(ctx)?;
    match name {
        // "creating it if necessary": of a worker, whose role is clear. minikube's `node start` refuses.
        Some(name) if among == Among::Workers && common::node(&cluster, Some(name)).is_err() => {
            let mut request = Request::one(Some(name), &args.flags)?;
            request.delete_on_failure = args.delete_on_failure;
            super::could(ctx, &request)?;
            ctx.run(add::add(ctx, &request))
        }
        Some(name) => {
            among.find(ctx, &cluster, name, Reason::NodeRetrieve)?;
            ctx.run(start(ctx, Some(name), among, &edit, args.delete_on_failure))
        }
        None if args.delete_on_failure => {
            Err(Fault::new(Reason::Usage, "--delete-on-failure is for one node, not for --all").into())
        }
        None => ctx.run(start(ctx, None, among, &edit, false)),
    }
}

async fn start(
    ctx: &Ctx,
    name: Option<&str>,
    among: Among,
    edit: &Edit,
    delete_on_failure: bool,
) -> Result<()> {
    let _lock = ProfileLock::acquire(ctx, &ctx.profile).await?;
    let file = load(ctx)?;
    let nodes = match name {
        Some(name) => vec![among.find(ctx, &file.cluster, name, Reason::NodeRetrieve)?],
        None => among.of(&file.cluster),
    };
    if nodes.is_empty() {
        let message = format!("The cluster {:?} has no workers", file.cluster.name);
        ctx.emit(Event::info(Style::Notice, message));
        return Ok(());
    }
    let cluster = change::edited(&file.cluster, &nodes, edit, host::size())?;
    let lines = change::lines(&file.cluster, &cluster)?;
    common::able(Some(&file.cluster), &cluster)?;
    if edit.version.is_some() {
        core::images_can(ctx, &cluster)?;
    }
    common::require_healthy(ctx, &file.cluster).await?;
    for node in &nodes {
        let (machine, role) = (cluster.machine(node), role(node));
        let message = format!("Starting \"{machine}\" {role} node in \"{}\" cluster", cluster.name);
        ctx.emit(Event::info(Style::Starting, message));
    }
    if cluster != file.cluster {
        lines.iter().for_each(|line| ctx.emit(Event::info(Style::Option, line)));
        profile::save(&ctx.home, &cluster, Some(&file.raw))?;
    }
    let machines: Vec<String> = nodes.iter().map(|n| cluster.machine(n)).collect();
    for machine in &machines {
        fault::lift(ctx, &cluster.name, Some(machine)).await?;
    }
    match core::add(ctx, &cluster, &machines, WAIT).await {
        Ok(started) => {
            pending::end(&ctx.home, &cluster.name, |name| nodes.iter().any(|n| n.name == name))?;
            ctx.emit(Event::info(Style::Ready, done(&cluster, &nodes, started)));
            Ok(())
        }
        Err(error) => {
            if let [node] = nodes.as_slice()
                && delete_on_failure
                && !ctx.cancel.is_cancelled()
            {
                remove(ctx, &load(ctx)?, node, true).await?;
            }
            Err(error)
        }
    }
}

fn done(cluster: &Cluster, nodes: &[Node], started: Started) -> String {
    let names: Vec<String> = nodes.iter().map(|n| shown(cluster, n)).collect();
    let names = names.join(", ");
    match (started, nodes.len()) {
        (Started::AlreadyRunning, 1) => format!("{names} is already running"),
        (Started::AlreadyRunning, _) => format!("{names} are already running"),
        (Started::Changed, 1) => format!("Successfully started node {names}!"),
        (Started::Changed, _) => format!("Successfully started nodes {names}!"),
    }
}
