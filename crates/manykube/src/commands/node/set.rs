//! A node that exists becomes another one.

use anyhow::Result;
use model::status::Host;
use model::{Fault, Reason};

use super::{Among, WAIT, change, common, load, shown};
use crate::args::node_flags::{Edit, NodeFlags};
use crate::core::{self, Started};
use crate::ctx::Ctx;
use crate::host;
use crate::report::{Event, Style};
use crate::state::lock::ProfileLock;
use crate::state::pending::{self, Pending};
use crate::state::profile;

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
    if edit.version.is_some() {
        core::images_can(ctx, &cluster)?;
    }
    let seen = core::observe(ctx, &file.cluster).await?;
    let place = file.cluster.nodes.iter().position(|n| n.name == node.name);
    let changing = pending::unfinished(&ctx.home, &file.cluster, Pending::Changing);
    // Off because of a change that was cut short is no less running than before it.
    let runs = place.and_then(|i| seen.get(i)).is_some_and(|s| s.host == Host::Running)
        || changing.iter().any(|n| n.name == node.name);
    if runs {
        common::require_healthy(ctx, &file.cluster).await?;
    }
    // Before it happens: who reads "(restart)" may still press Ctrl-C, and the next start carries on.
    if !lines.is_empty() {
        ctx.emit(Event::info(Style::Happy, format!("Changing node {shown} of cluster {}", cluster.name)));
        lines.iter().for_each(|line| ctx.emit(Event::info(Style::Option, line)));
        if runs {
            pending::begin(&ctx.home, &cluster, Pending::Changing, std::slice::from_ref(&node))?;
        }
        profile::save(&ctx.home, &cluster, Some(&file.raw))?;
    }
    // Also when the configuration says so already: whoever wrote it may have been cut short.
    let changed = runs && core::add(ctx, &cluster, &[machine], WAIT).await? == Started::Changed;
    pending::end(&ctx.home, &cluster.name, |name| name == node.name)?;
    let message = match (runs, changed) {
        (true, true) => format!("Successfully changed node {shown}!"),
        (true, false) => format!("{shown} is as asked for already"),
        (false, _) if lines.is_empty() => format!("{shown} is as asked for already, but does not run"),
        (false, _) => format!("{shown} does not run: it will be as asked for at its next start"),
    };
    ctx.emit(Event::info(Style::Ready, message));
    Ok(())
}
