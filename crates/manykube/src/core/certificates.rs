//! Are the certificates on the host and those in the nodes what they should be?

use anyhow::Result;
use bootstrap::pki::{self, Found};
use bootstrap::{Certified, certified};
use model::{Cluster, Home, Node};
use plan::Setup;

use crate::ctx::Ctx;
use crate::host;

/// `None` while a profile has none.
pub fn look(home: &Home, cluster: &Cluster) -> Result<Option<Found>> {
    pki::look(home, cluster, host::now())
}

/// What a machine that is there lacks: a restart with all of them, or only what its API server serves with.
pub fn of_node(home: &Home, cluster: &Cluster, node: &Node, found: Option<&Found>) -> (Setup, bool) {
    let Some(found) = found else { return (Setup::AsWanted, true) };
    let machine = cluster.machine(node);
    let read = |path: &str| drivers::machine::files::read(home, &machine, path);
    match certified(cluster, node, found, &read) {
        Certified::AsWanted => (Setup::AsWanted, true),
        Certified::OtherApi => (Setup::AsWanted, false),
        Certified::Other => (Setup::Other, false),
    }
}

/// What the user should know before nodes restart for it.
pub fn tell(ctx: &Ctx, cluster: &Cluster) -> Result<()> {
    if look(&ctx.home, cluster)?.is_some_and(|found| found.ended) {
        ctx.warn("The cluster's certificates have expired. Generating new ones ...");
    }
    Ok(())
}
