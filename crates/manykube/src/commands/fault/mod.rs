//! `fault`: breaks a cluster on purpose, and takes it back.

mod args;
mod inject;
mod packets;
mod records;
mod show;
mod undo;
mod watch;

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use model::injected::Harm;
use model::{Cluster, Fault, Reason, resources};

pub use args::{Args, Command};
pub use show::add as add_to_status;
pub use undo::{lift, lift_if_possible};

use super::cluster as common;
use crate::ctx::Ctx;
use crate::report::{Event, Style};
use records::{Record, Records};

pub fn run(ctx: &Ctx, args: &Args) -> Result<u8> {
    let cluster = common::load(ctx)?;
    ctx.run(perform(ctx, &cluster, &args.command)).map(|()| 0)
}

async fn perform(ctx: &Ctx, cluster: &Cluster, command: &Command) -> Result<()> {
    let machine =
        async |name: &str| Ok::<_, anyhow::Error>(cluster.machine(inject::target(ctx, cluster, name).await?));
    match command {
        Command::Kill(target) => {
            let machine = machine(&target.node).await?;
            inject::inject(ctx, cluster, &machine, Harm::Killed, target.time).await
        }
        Command::Freeze(target) => {
            let machine = machine(&target.node).await?;
            inject::inject(ctx, cluster, &machine, Harm::Frozen, target.time).await
        }
        Command::Thaw { node } => heal(ctx, cluster, Some(node), |r| r.fault.harm == Harm::Frozen).await,
        Command::Cut { target, from } => {
            let from = others(cluster, &target.node, from)?;
            let machine = machine(&target.node).await?;
            inject::inject(ctx, cluster, &machine, Harm::Cut { from }, target.time).await
        }
        Command::Slow { target, how } => {
            let slowness = how.slowness()?;
            let machine = machine(&target.node).await?;
            inject::inject(ctx, cluster, &machine, Harm::Slow(slowness), target.time).await
        }
        Command::KillProcess { target } => {
            let machine = machine(&target.node).await?;
            let process = target.process.clone();
            if target.time.is_some() {
                let harm = Harm::ProcessKilled { process };
                return inject::inject(ctx, cluster, &machine, harm, target.time).await;
            }
            let killed = inject::kill(ctx, &machine, &process).await?;
            let plural = if killed == 1 { "" } else { "es" };
            let message = format!("{machine}: killed {killed} process{plural} of {process}");
            ctx.emit(Event::info(Style::Notice, message));
            Ok(())
        }
        Command::FillDisk { target, leave } => {
            let wrong =
                || Fault::new(Reason::Usage, format!("--leave={leave} is not a size like 100m or 2g"));
            let left_mib = if leave == "0" { 0 } else { resources::mib(leave).ok_or_else(wrong)? };
            let machine = machine(&target.node).await?;
            inject::inject(ctx, cluster, &machine, Harm::DiskFull { left_mib }, target.time).await
        }
        Command::Heal { node: Some(node), all: true } => {
            Err(Fault::new(Reason::Usage, format!("Either {node} or --all is meant, not both")).into())
        }
        Command::Heal { node, .. } => heal(ctx, cluster, node.as_deref(), |_| true).await,
        Command::List { output } => show::list(ctx, *output).await,
        Command::Watch { machine, kind } => watch::run(ctx, machine, kind).await,
    }
}

/// The machines at the other ends of a cut.
fn others(cluster: &Cluster, node: &str, from: &[String]) -> Result<Vec<String>, Fault> {
    let own = cluster.machine(common::node(cluster, Some(node))?);
    let mut machines = Vec::new();
    for name in from {
        let machine = cluster.machine(common::node(cluster, Some(name))?);
        if machine == own {
            return Err(Fault::new(Reason::Usage, format!("{own} cannot be cut from itself")));
        }
        if !machines.contains(&machine) {
            machines.push(machine);
        }
    }
    Ok(machines)
}

async fn heal(
    ctx: &Ctx,
    cluster: &Cluster,
    node: Option<&str>,
    kind: impl Fn(&Record) -> bool,
) -> Result<()> {
    let machine = node.map(|n| common::node(cluster, Some(n)).map(|n| cluster.machine(n))).transpose()?;
    let Some(mut records) = Records::open(&ctx.home, &cluster.name)? else { return Ok(()) };
    let meant = |r: &Record| kind(r) && machine.as_deref().is_none_or(|m| undo::concerns(&r.fault, m));
    let undone = undo::undo(ctx, Some(cluster), &mut records, meant).await?;
    undone.iter().for_each(|fault| undo::tell(ctx, fault));
    if undone.is_empty() {
        ctx.emit(Event::info(Style::Notice, "There is no such fault"));
    }
    Ok(())
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
