//! Which processors a machine runs on where its cgroup cannot say so: systemd hands no cpuset on to a user. Each thread
//! has its own set then, and gives it to its children.

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};

use anyhow::{Context, Result};

use super::{Cgroup, Version, cpuset};

impl Cgroup {
    /// Does the group bear a set of processors?
    fn has_cpuset(&self) -> bool {
        matches!(self.version, Version::V1(_)) || self.groups().any(|group| group.join(cpuset::FILE).exists())
    }

    /// This process, which is to become the machine; an empty set is all that there are.
    pub fn pin(&self, processors: &[usize]) -> Result<()> {
        if processors.is_empty() || self.has_cpuset() {
            return Ok(());
        }
        sched_setaffinity(None, &set(processors)).context("keep to the machine's processors")
    }

    /// All of a machine that runs.
    pub(super) fn pin_all(&self, processors: &[usize]) {
        if processors.is_empty() || self.has_cpuset() {
            return;
        }
        let wanted = set(processors);
        // Twice: whoever is born in the first round may have the old set.
        for _ in 0..2 {
            for thread in self.members().into_iter().flat_map(threads) {
                // One that has ended meanwhile needs no processor.
                let _ = sched_setaffinity(Some(thread), &wanted);
            }
        }
    }
}

fn set(processors: &[usize]) -> CpuSet {
    let mut set = CpuSet::new();
    processors.iter().for_each(|cpu| set.set(*cpu));
    set
}

fn threads(process: u32) -> Vec<Pid> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    tasks.filter_map(|task| Pid::from_raw(task.file_name().to_str()?.parse().ok()?)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Hierarchy;
    use super::*;

    #[test]
    fn a_group_without_a_cpuset_is_pinned_thread_by_thread() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("cgroup.procs"), format!("{}\n", std::process::id())).unwrap();
        let version = Version::V2(Hierarchy { mount: dir.path().to_owned(), options: String::new() });
        let group = Cgroup { version, path: "".into() };
        assert!(!group.has_cpuset());
        // All that it has already: other tests run in this process.
        let all = cpuset::of_host();
        group.pin_all(&all);
        assert_eq!(cpuset::of_host(), all);
        std::fs::write(dir.path().join(cpuset::FILE), "0\n").unwrap();
        assert!(group.has_cpuset());
    }
}
