//! Groups that stand still: a paused container, or a whole machine.

use std::path::Path;

/// Of each version's freezer: the file, and what is written to it.
const FILES: [(&str, &str); 2] = [("freezer.state", "THAWED"), ("cgroup.freeze", "0")];

/// From the top down: in v1 a group only runs when all above it do.
pub fn thaw(group: &Path) {
    for (file, word) in FILES {
        let path = group.join(file);
        // A group that goes away meanwhile needs no thawing.
        if path.exists() {
            let _ = std::fs::write(path, word);
        }
    }
    for entry in std::fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|t| t.is_dir()) {
            thaw(&entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_group_below_is_thawed() {
        let dir = tempfile::tempdir().expect("a directory");
        let inner = dir.path().join("kubepods/pod");
        std::fs::create_dir_all(&inner).expect("groups");
        for group in [dir.path(), &inner] {
            std::fs::write(group.join("freezer.state"), "FROZEN").expect("freeze");
        }
        thaw(dir.path());
        let state = |group: &Path| std::fs::read_to_string(group.join("freezer.state")).expect("state");
        assert_eq!((state(dir.path()).as_str(), state(&inner).as_str()), ("THAWED", "THAWED"));
        assert!(!inner.join("cgroup.freeze").exists());
    }
}
