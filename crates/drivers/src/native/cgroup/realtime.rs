//! A machine may have threads that go before all others, as the one which decides about the virtual address.
//!
//! Where the kernel counts the time of such threads by cgroup (v1, RT_GROUP_SCHED) a new group has none. All here is
//! best effort: a kernel without that, or a parent that has no time left, makes them ordinary threads.

use std::path::Path;

const FILE: &str = "cpu.rt_runtime_us";
/// Of each second: what the host lends to all machines, and each of them at most.
const ALL: &str = "500000";
const EACH: &str = "50000";

pub fn lend(parent: &Path, group: &Path) {
    for (group, time) in [(parent, ALL), (group, EACH)] {
        let path = group.join(FILE);
        if std::fs::read_to_string(&path).is_ok_and(|now| now.trim() == "0") {
            let _ = std::fs::write(path, time);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_lent_stays_and_what_is_not_there_is_not_made() {
        let dir = tempfile::tempdir().unwrap();
        let (parent, group) = (dir.path(), dir.path().join("machine"));
        std::fs::create_dir(&group).unwrap();
        lend(parent, &group);
        assert!(!parent.join(FILE).exists() && !group.join(FILE).exists());
        std::fs::write(parent.join(FILE), "700000\n").unwrap();
        std::fs::write(group.join(FILE), "0\n").unwrap();
        lend(parent, &group);
        assert_eq!(std::fs::read_to_string(parent.join(FILE)).unwrap(), "700000\n");
        assert_eq!(std::fs::read_to_string(group.join(FILE)).unwrap(), EACH);
    }
}
