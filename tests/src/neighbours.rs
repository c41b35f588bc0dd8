//! Other users of the host who have clusters too: other labs, other homes. What is theirs is no test's business.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::footprint::read;

pub struct Neighbours {
    /// Of this lab: its directory, and its engine's.
    places: Vec<String>,
    /// Groups of machines that live and are not this lab's: `/manykube/…`, `/docker/…`.
    groups: BTreeSet<String>,
    /// Directories of other labs: a machine of theirs that was killed has a group without processes.
    labs: Vec<PathBuf>,
}

impl Neighbours {
    pub fn of(places: &[PathBuf]) -> Neighbours {
        let places: Vec<String> = places.iter().map(|place| place.to_string_lossy().into_owned()).collect();
        let mut others = Neighbours { labs: other_labs(&places), places, groups: BTreeSet::new() };
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
        if self.labs.iter().any(|lab| is_machine_of(lab, path)) {
            return true;
        }
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

fn other_labs(places: &[String]) -> Vec<PathBuf> {
    let around = places.iter().filter_map(|place| Some(PathBuf::from(place).parent()?.to_owned()));
    let entries = around.filter_map(|dir| std::fs::read_dir(dir).ok()).flatten().flatten();
    let labs = entries.filter(|e| e.file_name().to_string_lossy().starts_with("lab-")).map(|e| e.path());
    labs.filter(|lab| places.iter().all(|place| lab != &PathBuf::from(place))).collect()
}

/// The driver tags a machine's group with its directory: `/manykube/minikube-m03-d8c535ea78/…`.
fn is_machine_of(lab: &std::path::Path, path: &str) -> bool {
    let group = path.split_once("/manykube/").and_then(|(_, rest)| rest.split('/').next());
    let Some((machine, tag)) = group.and_then(|group| group.rsplit_once('-')) else { return false };
    let dir = lab.join("home/machines").join(machine);
    let bytes = dir.as_os_str().as_encoded_bytes().iter();
    // FNV-1a, as everywhere in names on the host.
    let hash =
        bytes.fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x100_0000_01b3));
    tag == format!("{:010x}", hash >> 24)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_known_by_the_directory_of_its_machine() {
        let lab = PathBuf::from("/tests/lab-a");
        let group = "/sys/fs/cgroup/cpu/manykube/minikube-m03-d8c535ea78";
        assert!(is_machine_of(&lab, group) && is_machine_of(&lab, &format!("{group}/kubepods")));
        assert!(!is_machine_of(&PathBuf::from("/tests/lab-b"), group));
        assert!(!is_machine_of(&lab, "/sys/fs/cgroup/cpu/manykube"));
    }
}
