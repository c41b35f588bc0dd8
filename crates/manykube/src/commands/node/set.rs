//! A node that exists becomes another one.

use anyhow::Result;
use model::status::Host;
use model::{Fault, Reason};

use super::{Among, WAIT, change, common, load, shown};
use crate::args::node_flags::{Edit, NodeFlags};
use crate::ctx::Ctx;
use crate::report::{Event, Style};
use crate::state::lock::ProfileLock;
use crate::state::profile;
use crate::{core, host};

/// What the flags ask for; nothing is a slip.
pub fn asked(flags: &NodeFlags, among: Among) -> Result<Edit, Fault> {
    let edit = flags.edit(host::size())?;
    if edit.is_empty() {
        let usage =
            format!("Usage: {} set NAME --memory=… --labels=…: nothing to change was given", among.noun());
        return Err(Fault::new(Reason::Usage, usage));
    }
    Ok(edit)
}

pub async fn set(ctx: &Ctx, name: &str, edit: &Edit) -> Result<()> {
    let _lock = ProfileLock::acquire(ctx, &ctx.profile).await?;
    let file = load(ctx)?;
    let node = Among::All.find(ctx, &file.cluster, name, Reason::NodeRetrieve)?;
    let (shown, machine) = (shown(&file.cluster, &node), file.cluster.machine(&node));
    let cluster = change::edited(&file.cluster, std::slice::from_ref(&node), edit, host::size())?;
    let lines = change::lines(&file.cluster, &cluster)?;
    common::able(Some(&file.cluster), &cluster)?;
    if lines.is_empty() {
        ctx.emit(Event::info(Style::Ready, format!("{shown} is as asked for already")));
        return Ok(());
    }
    if edit.version.is_some() {
        core::images_can(ctx, &cluster)?;
    }
    let seen = core::observe(ctx, &file.cluster).await?;
    let place = file.cluster.nodes.iter().position(|n| n.name == node.name);
    let runs = place.and_then(|i| seen.get(i)).is_some_and(|s| s.host == Host::Running);
    if runs {
        common::require_healthy(ctx, &file.cluster).await?;
    }
    // Before it happens: who reads "(restart)" may still press Ctrl-C, and the next start carries on.
    ctx.emit(Event::info(Style::Happy, format!("Changing node {shown} of cluster {}", cluster.name)));
    lines.iter().for_each(|line| ctx.emit(Event::info(Style::Option, line)));
    profile::save(&ctx.home, &cluster, Some(&file.raw))?;
    let message = if runs {
        core::add(ctx, &cluster, &[machine], WAIT).await?;
        format!("Successfully changed node {shown}!")
    } else {
        format!("{shown} does not run: it will be as asked for at its next start")
    };
    ctx.emit(Event::info(Style::Ready, message));
    Ok(())
}
