//! Which processors a machine runs on. A quota would enforce the number as well, but then a node of one
//! CPU would still see all of them, and its kubelet would tell the scheduler so.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::write;

pub const FILE: &str = "cpuset.cpus";
/// A pod may be born while its group's parents change.
const TRIES: u32 = 20;

/// `count` of the host's processors, beginning elsewhere for each machine, so that small ones do not all
/// sit on the first. `None` when it has all.
pub fn share(host: &[usize], count: u32, number: u32) -> Option<Vec<usize>> {
    let (count, number) = (usize::try_from(count).ok()?, usize::try_from(number).ok()?);
    if count == 0 || count >= host.len() {
        return None;
    }
    let first = number.checked_mul(count)? % host.len();
    let mut chosen: Vec<usize> = host.iter().cycle().skip(first).take(count).copied().collect();
    chosen.sort_unstable();
    Some(chosen)
}

pub fn list(cpus: &[usize]) -> String {
    cpus.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// Those that this process may use.
pub fn of_host() -> Vec<usize> {
    let Ok(set) = rustix::thread::sched_getaffinity(None) else { return Vec::new() };
    (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect()
}

/// Gives a group and, with v1, everything below it these processors: there a child may have no more than
/// its parent and does not follow it. So all get both sets from the top down, then the new one from the
/// bottom up.
pub fn apply(group: &Path, cpus: &str) -> Result<()> {
    if !group.join(FILE).exists() {
        return Ok(());
    }
    if group.join("cgroup.controllers").exists() {
        return write(&group.join(FILE), cpus);
    }
    let mut tries = 0;
    loop {
        let groups = tree(group)?;
        let old = fs_err::read_to_string(group.join(FILE))?;
        let both = [old.trim(), cpus].into_iter().filter(|s| !s.is_empty()).collect::<Vec<_>>().join(",");
        let widened = groups.iter().try_for_each(|g| write(&g.join(FILE), &both));
        let narrowed =
            widened.and_then(|()| groups.iter().rev().try_for_each(|g| write(&g.join(FILE), cpus)));
        tries += 1;
        match narrowed {
            Err(e) if tries == TRIES => return Err(e).context("move the machine to other processors"),
            Err(_) => {}
            Ok(()) => return Ok(()),
        }
    }
}

/// The group and all below it, each before its children.
fn tree(group: &Path) -> Result<Vec<PathBuf>> {
    let mut all = vec![group.to_owned()];
    let mut next = 0;
    while let Some(group) = all.get(next).cloned() {
        next += 1;
        let children = fs_err::read_dir(&group)?.flatten().map(|e| e.path());
        all.extend(children.filter(|path| path.is_dir()));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_are_spread() {
        let host = [0, 1, 2, 3];
        let of = |count, number| share(&host, count, number).map(|c| list(&c));
        assert_eq!([of(1, 2), of(1, 3), of(1, 4)], ["2", "3", "0"].map(|s| Some(s.to_owned())));
        assert_eq!([of(3, 0), of(3, 1)], ["0,1,2", "0,1,3"].map(|s| Some(s.to_owned())));
        assert_eq!([of(4, 1), of(9, 1), of(0, 1)], [None, None, None]);
    }

    #[test]
    fn children_are_told_too() {
        let dir = tempfile::tempdir().unwrap();
        let pod = dir.path().join("kubepods/pod1");
        std::fs::create_dir_all(&pod).unwrap();
        for group in tree(dir.path()).unwrap() {
            std::fs::write(group.join(FILE), "0-1\n").unwrap();
        }
        apply(dir.path(), "1").unwrap();
        assert_eq!(std::fs::read_to_string(pod.join(FILE)).unwrap(), "1");
        assert_eq!(tree(dir.path()).unwrap().len(), 3);
    }
}
