//! Which machines run on this host, by their groups: also those of other homes.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::{PARENT, Version};

/// The groups that have a process, below each mount.
pub fn running() -> Result<Vec<PathBuf>> {
    let mount = match Version::of_host()? {
        Version::V1(all) => all.into_iter().next().map(|h| h.mount),
        Version::V2(one) => Some(one.mount),
    };
    let Some(parent) = mount.map(|m| m.join(PARENT)) else { return Ok(Vec::new()) };
    let groups = std::fs::read_dir(parent).into_iter().flatten().flatten();
    Ok(groups.filter(|g| is_populated(&g.path())).map(|g| Path::new(PARENT).join(g.file_name())).collect())
}

fn is_populated(group: &Path) -> bool {
    if std::fs::read(group.join("cgroup.procs")).is_ok_and(|procs| !procs.is_empty()) {
        return true;
    }
    let children = std::fs::read_dir(group).into_iter().flatten().flatten();
    children.into_iter().any(|c| c.file_type().is_ok_and(|t| t.is_dir()) && is_populated(&c.path()))
}
