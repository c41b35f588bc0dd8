//! Other users of the host who have clusters too: other labs, other homes. What is theirs is no test's business.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::footprint::read;

pub struct Neighbours {
    /// Of this lab: its directory, and its engine's.
    places: Vec<String>,
    /// Groups of machines that live and are not this lab's: `/manykube/…`, `/docker/…`.
    groups: BTreeSet<String>,
}

impl Neighbours {
    pub fn of(places: &[PathBuf]) -> Neighbours {
        let places = places.iter().map(|place| place.to_string_lossy().into_owned()).collect();
        let mut others = Neighbours { places, groups: BTreeSet::new() };
        let agents = pids().into_iter().filter(|pid| read(&format!("/proc/{pid}/comm")).trim() == "manykube");
        others.groups = agents.filter(|pid| !others.is_ours(*pid)).filter_map(group).collect();
        others
    }

    pub fn none(&self) -> bool {
        self.groups.is_empty()
    }

    /// An agent's root lies in its machine's directory; a command knows its home from its environment, and sees all
    /// mounts of the host.
    fn is_ours(&self, pid: u32) -> bool {
        let space = |of: &str| std::fs::read_link(format!("/proc/{of}/ns/mnt")).ok();
        let inside = space(&pid.to_string()) != space("self");
        let said = std::fs::read(format!("/proc/{pid}/{}", if inside { "mountinfo" } else { "environ" }));
        let said = said.unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        self.places.iter().any(|place| said.contains(place))
    }

    pub fn have_process(&self, pid: u32) -> bool {
        match group(pid) {
            Some(group) => self.groups.contains(&group),
            None => !self.is_ours(pid),
        }
    }

    /// Theirs, or what theirs are in.
    pub fn have_group(&self, path: &str) -> bool {
        self.groups.iter().any(|group| {
            let above = group.rsplit_once('/').map_or("", |(above, _)| above);
            path.contains(&format!("{group}/"))
                || path.ends_with(group)
                || !above.is_empty() && path.ends_with(above)
        })
    }

    /// A line of mountinfo: whatever a cluster mounts on the host is of its home, its engine or our own place there.
    pub fn have_mount(&self, line: &str) -> bool {
        !line.contains("/run/manykube") && !self.places.iter().any(|place| line.contains(place))
    }
}

/// The machine's, of whoever runs in it.
pub fn group(pid: u32) -> Option<String> {
    let text = read(&format!("/proc/{pid}/cgroup"));
    let paths = text.lines().filter_map(|line| line.splitn(3, ':').nth(2));
    let of_machine =
        |path: &&str| ["/manykube/", "/docker/", "/libpod_parent/"].iter().any(|top| path.starts_with(top));
    let path: Vec<&str> = paths.into_iter().find(of_machine)?.split('/').take(3).collect();
    Some(path.join("/"))
}

pub fn pids() -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|e| e.file_name().to_str()?.parse().ok()).collect()
}
