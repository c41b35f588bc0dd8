//! Who is in a group, or in one below it.

use std::path::Path;

use super::Cgroup;

impl Cgroup {
    /// Processes by their numbers on the host. None when there is no such group.
    pub fn members(&self) -> Vec<u32> {
        // Every process of the machine is in each hierarchy: one is enough to ask.
        let mut found = Vec::new();
        if let Some(group) = self.groups().next() {
            collect(&group, &mut found);
        }
        found
    }
}

fn collect(group: &Path, found: &mut Vec<u32>) {
    let own = std::fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    found.extend(own.lines().filter_map(|line| line.parse::<u32>().ok()));
    for entry in std::fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|t| t.is_dir()) {
            collect(&entry.path(), found);
        }
    }
}
