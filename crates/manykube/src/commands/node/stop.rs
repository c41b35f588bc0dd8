//! Nodes go down and keep all that they have.

use anyhow::Result;
use model::{Node, Reason};
use plan::Leave;

use super::args::AllArgs;
use super::{Among, common, shown};
use crate::commands::fault;
use crate::core;
use crate::ctx::Ctx;
use crate::report::{Event, Output, Style};
use crate::state::lock::ProfileLock;
use crate::state::pending;

pub fn run(ctx: &Ctx, args: &AllArgs, among: Among) -> Result<u8> {
    match args.get(among, "stop")? {
        Some(name) => {
            among.find(ctx, &common::load(ctx)?, name, Reason::NodeRetrieve)?;
            ctx.run(stop(ctx, Some(name), among)).map(|()| 0)
        }
        // All of a cluster at once need not leave etcd one by one, which the last could not.
        None if among == Among::All => {
            let (all, cancel_scheduled) = (false, false);
            let args = super::super::stop::Args {
                all,
                keep_context_active: true,
                schedule: None,
                cancel_scheduled,
                scheduled_at: None,
                output: Output::Text,
            };
            super::super::stop::run(ctx, &args)
        }
        None => {
            common::load(ctx)?;
            ctx.run(stop(ctx, None, among)).map(|()| 0)
        }
    }
}

async fn stop(ctx: &Ctx, name: Option<&str>, among: Among) -> Result<()> {
    let _lock = ProfileLock::acquire(ctx, &ctx.profile).await?;
    let cluster = common::load(ctx)?;
    let nodes: Vec<Node> = match name {
        Some(name) => vec![among.find(ctx, &cluster, name, Reason::NodeRetrieve)?],
        None => among.of(&cluster),
    };
    for node in &nodes {
        ctx.emit(Event::info(Style::Stopping, format!("Stopping node \"{}\"  ...", cluster.machine(node))));
        fault::lift_if_possible(ctx, &cluster.name, Some(&cluster.machine(node))).await;
        core::leave(ctx, &cluster, node, Leave::Stop, false).await?;
        pending::end(&ctx.home, &cluster.name, |name| name == node.name)?;
        let message = format!("Successfully stopped node {}", shown(&cluster, node));
        ctx.emit(Event::info(Style::Stopped, message));
    }
    Ok(())
}
