//! Is there memory for the nodes that are to be booted?

use anyhow::Result;
use drivers::MachineState;
use model::{Cluster, Fault, resources};

use super::{driver, look};
use crate::ctx::Ctx;
use crate::host;

/// A sentence when it is getting tight. Nodes that run have what they need already.
pub async fn check(ctx: &Ctx, cluster: &Cluster) -> Result<Result<Option<String>, Fault>> {
    let machines = look::machines_of(&cluster.name, Some(cluster), &driver(ctx, cluster.driver)).await?;
    let down = |control_plane: bool| {
        let those = cluster.nodes.iter().filter(|n| n.control_plane == control_plane);
        let down =
            those.filter(|n| machines.get(&cluster.machine(n)) != Some(&MachineState::Running)).count();
        u32::try_from(down).unwrap_or(u32::MAX)
    };
    let size = host::size();
    let available = host::available_mib().unwrap_or(size.memory_mib);
    Ok(resources::check_room(down(true), down(false), available, size))
}
