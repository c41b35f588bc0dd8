//! The group for a machine's own processes: agent, containerd, kubelet, commands that the agent runs.
//!
//! v2 wants one, because a group with controllers for its children may have no processes. With v1 processes and
//! groups may be neighbours, but then each process weighs as much as a whole group: thirty `runc` of new pods
//! would leave a thirtieth of the machine to `kubepods`, where etcd and the API server run.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::{Hierarchy, Version, enter_group, inherit_cpuset, realtime};

/// The name systemd uses for the same thing.
pub const LEAF: &str = "init.scope";

/// Moves this process into a leaf of each v1 hierarchy. It sees the machine's groups, at the places where the
/// machine mounts them.
pub fn settle_v1(version: &Version) -> Result<()> {
    let Version::V1(hierarchies) = version else { return Ok(()) };
    hierarchies.iter().try_for_each(|hierarchy| {
        let group = mounted(hierarchy)?;
        let leaf = group.join(LEAF);
        fs_err::create_dir_all(&leaf)?;
        inherit_cpuset(&group, &leaf)?;
        realtime::lend(&group, &leaf);
        enter_group(&leaf)
    })
}

/// Where a machine sees its group of a hierarchy.
fn mounted(hierarchy: &Hierarchy) -> Result<PathBuf> {
    let name = hierarchy.mount.file_name().context("a cgroup mount without a name")?;
    Ok(Path::new("/sys/fs/cgroup").join(name))
}
