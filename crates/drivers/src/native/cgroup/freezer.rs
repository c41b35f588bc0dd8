//! Groups that stand still: a paused container, or a whole machine.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::{Cgroup, Version, write};

/// Who is in the middle of a call into the kernel has to come out of it first.
const LIMIT: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(5);

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

/// Where a version keeps it: the file to write to, the one that tells, and the words.
struct Freezer {
    switch: PathBuf,
    state: PathBuf,
    words: [&'static str; 2],
    is_frozen: fn(&str) -> bool,
}

impl Cgroup {
    /// Blocks until all stand still.
    pub fn freeze(&self) -> Result<()> {
        let freezer = self.freezer()?;
        write(&freezer.switch, freezer.words[1])?;
        let deadline = Instant::now() + LIMIT;
        while !freezer.is_frozen()? {
            if Instant::now() > deadline {
                write(&freezer.switch, freezer.words[0])?;
                bail!("not all processes stood still within {} s; none does now", LIMIT.as_secs());
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    /// The opposite. A container in it that is paused stays so. A group that is not there goes on already.
    pub fn unfreeze(&self) -> Result<()> {
        match self.freezer() {
            Ok(freezer) if freezer.switch.exists() => write(&freezer.switch, freezer.words[0]),
            _ => Ok(()),
        }
    }

    pub fn is_frozen(&self) -> bool {
        self.freezer().and_then(|freezer| freezer.is_frozen()).unwrap_or(false)
    }

    fn freezer(&self) -> Result<Freezer> {
        Ok(match &self.version {
            Version::V2(one) => {
                let group = one.mount.join(&self.path);
                Freezer {
                    switch: group.join("cgroup.freeze"),
                    state: group.join("cgroup.events"),
                    words: ["0", "1"],
                    is_frozen: |text| text.lines().any(|line| line == "frozen 1"),
                }
            }
            Version::V1(all) => {
                let found = all.iter().find(|h| h.options.split(',').any(|option| option == "freezer"));
                let hierarchy = found.context("this host has no cgroup controller \"freezer\" mounted")?;
                let state = hierarchy.mount.join(&self.path).join("freezer.state");
                Freezer {
                    switch: state.clone(),
                    state,
                    words: ["THAWED", "FROZEN"],
                    is_frozen: |text| text.trim() == "FROZEN",
                }
            }
        })
    }
}

impl Freezer {
    fn is_frozen(&self) -> Result<bool> {
        Ok((self.is_frozen)(&fs_err::read_to_string(&self.state)?))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Hierarchy;
    use super::*;

    #[test]
    fn both_versions_have_their_words() {
        let hierarchy = |options: &str| Hierarchy { mount: "/c".into(), options: options.into() };
        let cgroup = |version| Cgroup { version, path: "manykube/a".into() };
        let v2 = cgroup(Version::V2(hierarchy(""))).freezer().expect("v2 always has one");
        assert_eq!(v2.switch, PathBuf::from("/c/manykube/a/cgroup.freeze"));
        assert!((v2.is_frozen)("populated 1\nfrozen 1\n") && !(v2.is_frozen)("populated 1\nfrozen 0\n"));
        let v1 = Version::V1(vec![hierarchy("cpu,cpuacct"), hierarchy("freezer")]);
        let v1 = cgroup(v1).freezer().expect("it is mounted");
        assert!((v1.is_frozen)("FROZEN\n") && !(v1.is_frozen)("FREEZING\n"));
        assert!(cgroup(Version::V1(vec![hierarchy("cpu")])).freezer().is_err());
    }

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
