//! Which images were put into a cluster, beside its profile: nodes that come later get them too.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::Result;
use fs_err::os::unix::fs::OpenOptionsExt as _;
use model::Home;
use serde::{Deserialize, Serialize};

use crate::state::atomic;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Name → the digest that it stands for.
    #[serde(default)]
    pub images: BTreeMap<String, String>,
    /// What the cluster file named and was loaded.
    #[serde(default)]
    pub sources: BTreeSet<String>,
    /// The machine whose images all nodes are to have: that of `docker-env --all`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follow: Option<String>,
}

fn path(home: &Home, profile: &str) -> PathBuf {
    home.profile(profile).join("images.json")
}

impl Record {
    /// One that cannot be read is none: the images themselves are on the nodes.
    pub fn read(home: &Home, profile: &str) -> Record {
        let text = std::fs::read(path(home, profile)).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    pub fn has_sources(&self, wanted: &[String]) -> bool {
        wanted.iter().all(|w| self.sources.contains(w))
    }

    /// Commands and the follower of a Docker engine may do this at the same time.
    pub fn change(home: &Home, profile: &str, change: impl FnOnce(&mut Record)) -> Result<()> {
        let path = path(home, profile);
        let mut options = fs_err::OpenOptions::new();
        let lock = options.create(true).append(true).mode(0o600).open(path.with_extension("lock"))?;
        lock.file().lock()?;
        let before = Record::read(home, profile);
        let mut after = before.clone();
        change(&mut after);
        if after != before {
            atomic::write(&path, &serde_json::to_vec_pretty(&after)?, 0o600)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path(), None);
        std::fs::create_dir_all(home.profile("p")).unwrap();
        assert_eq!(Record::read(&home, "p"), Record::default());
        let add = |name: &str| {
            let name = name.to_owned();
            Record::change(&home, "p", |r| drop(r.images.insert(name, "sha256:0".into()))).unwrap();
        };
        add("a");
        add("b");
        Record::change(&home, "p", |r| drop(r.images.remove("a"))).unwrap();
        assert_eq!(Record::read(&home, "p").images.keys().collect::<Vec<_>>(), ["b"]);
    }
}
