//! PLACEHOLDER: what the commands count on for nodes with a configuration of their own. The real one
//! comes with the drivers' part of issue 5 and replaces this file.

use std::time::Duration;

use anyhow::Result;
use cluster_file::{Change, Effect};
use model::{Cluster, Fault, Node, Reason, skew};

use crate::ctx::Ctx;

/// Can this host give the node all that it is to have? Looked at before anything is saved.
pub fn able(cluster: &Cluster, node: &Node) -> Result<(), Fault> {
    skew::check(&cluster.kubernetes_version, &node.kubernetes_version, node.control_plane)
        .map_err(|why| Fault::new(Reason::Usage, format!("{}: {why}", cluster.machine(node))))
}

/// Makes machines of a saved cluster without booting them.
pub async fn create(_: &Ctx, cluster: &Cluster, _: &[String], _: Duration) -> Result<()> {
    let message = format!("Nodes of {:?} cannot be made without being started yet", cluster.name);
    Err(Fault::new(Reason::Unimplemented, message).into())
}

/// Are there node images for all nodes, or all that it takes to build them?
pub fn images_can(ctx: &Ctx, cluster: &Cluster) -> Result<()> {
    cluster.nodes.iter().try_for_each(|node| super::image_can(ctx, &node.kubernetes_version))
}

/// One line per change, each with what it takes.
pub fn changes(old: &Cluster, new: &Cluster) -> Vec<String> {
    let Ok(diff) = cluster_file::diff(old, new) else { return Vec::new() };
    let line = |of: &str, c: &Change| {
        let effect = if c.effect == Effect::Live { "live" } else { "restart" };
        format!("~ {of}{}: {} -> {} ({effect})", c.what, c.from, c.to)
    };
    let name = |name: &str| format!("{} ", model::names::machine(&new.name, name));
    let nodes = diff.changed.iter().flat_map(|n| n.changes.iter().map(move |c| line(&name(&n.name), c)));
    diff.cluster.iter().map(|c| line("", c)).chain(nodes).collect()
}
