//! A node leaves for good.

use anyhow::Result;
use model::config_file::ConfigFile;
use model::{Node, Reason};
use plan::Leave;

use super::{Among, common, load, shown};
use crate::commands::fault;
use crate::core;
use crate::ctx::Ctx;
use crate::report::{Event, Style};
use crate::state::lock::ProfileLock;
use crate::state::{pending, profile};

pub async fn delete(ctx: &Ctx, name: &str, force: bool) -> Result<()> {
    let _lock = ProfileLock::acquire(ctx, &ctx.profile).await?;
    let file = load(ctx)?;
    let node = Among::All.find(ctx, &file.cluster, name, Reason::NodeDelete)?;
    if !force {
        common::require_healthy(ctx, &file.cluster).await?;
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
    fault::lift_if_possible(ctx, &cluster.name, Some(&cluster.machine(node))).await;
    core::leave(ctx, cluster, node, Leave::Delete, force).await?;
    let mut after = cluster.clone();
    after.nodes.retain(|n| n.name != node.name);
    let certificates = ctx.home.profile(&cluster.name).join("pki/nodes").join(cluster.machine(node));
    let _ = std::fs::remove_dir_all(certificates);
    common::point_kubeconfig(ctx, cluster, &after)?;
    pending::end(&ctx.home, &cluster.name, |name| name == node.name)?;
    Ok(profile::save(&ctx.home, &after, Some(&file.raw))?)
}
