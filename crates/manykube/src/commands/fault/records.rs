//! `profiles/<p>/faults.json`: what is broken on purpose. Written before it is done and removed after it
//! was undone, so that there is no fault that nobody knows of.
//!
//! The profile's directory itself is the lock: faults come and go also while another command changes
//! the cluster, which holds the profile's own lock.

use std::fs::File;
use std::path::PathBuf;

use anyhow::Result;
use drivers::{Identity, boot_id};
use model::Home;
use model::injected::Injected;
use serde::{Deserialize, Serialize};

use crate::state::atomic;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    #[serde(flatten)]
    pub fault: Injected,
    /// The host's. A fault ends with it, but what a node has on its disk of it is there until it is undone.
    pub boot: String,
    /// Who undoes it when its time is up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watcher: Option<Identity>,
}

impl Record {
    pub fn new(fault: Injected) -> Record {
        Record { fault, boot: boot_id(), watcher: None }
    }

    pub fn is_of_this_boot(&self) -> bool {
        self.boot == boot_id()
    }
}

/// All faults of a profile; nobody else changes them as long as this lives.
pub struct Records {
    pub profile: String,
    pub list: Vec<Record>,
    path: PathBuf,
    _lock: File,
}

fn path(home: &Home, profile: &str) -> PathBuf {
    home.profile(profile).join("faults.json")
}

/// As they are now. A file that cannot be read says nothing.
fn read_all(home: &Home, profile: &str) -> Vec<Record> {
    let text = std::fs::read(path(home, profile)).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

pub fn read(home: &Home, profile: &str) -> Vec<Record> {
    let mut all = read_all(home, profile);
    all.retain(Record::is_of_this_boot);
    all
}

impl Records {
    /// `None` when there is no such profile. Whoever holds them is done in a moment.
    pub fn open(home: &Home, profile: &str) -> Result<Option<Records>> {
        let lock = match File::open(home.profile(profile)) {
            Ok(directory) => directory,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(e.into()),
        };
        lock.lock()?;
        Ok(Some(Records {
            profile: profile.to_owned(),
            list: read_all(home, profile),
            path: path(home, profile),
            _lock: lock,
        }))
    }

    pub fn save(&self) -> Result<()> {
        if self.list.is_empty() {
            return Ok(atomic::remove(&self.path)?);
        }
        Ok(atomic::write(&self.path, &serde_json::to_vec_pretty(&self.list)?, 0o600)?)
    }

    pub fn of_this_boot(&self) -> impl Iterator<Item = &Injected> {
        self.list.iter().filter(|r| r.is_of_this_boot()).map(|r| &r.fault)
    }
}

#[cfg(test)]
mod tests {
    use model::injected::Harm;

    use super::*;

    #[test]
    fn kept_and_forgotten() {
        let dir = tempfile::tempdir().expect("a directory");
        let home = Home::new(dir.path(), None);
        assert!(Records::open(&home, "demo").expect("no error").is_none());
        std::fs::create_dir_all(home.profile("demo")).expect("a profile");
        let fault = Injected { machine: "demo-m02".into(), harm: Harm::Frozen, since: 7, until: None };
        let mut records = Records::open(&home, "demo").expect("lock").expect("a profile");
        records.list.push(Record::new(fault.clone()));
        records.list.push(Record { boot: "another".into(), ..Record::new(fault.clone()) });
        records.save().expect("write");
        drop(records);
        assert_eq!(read(&home, "demo").iter().map(|r| &r.fault).collect::<Vec<_>>(), [&fault]);
        let mut records = Records::open(&home, "demo").expect("lock").expect("a profile");
        assert_eq!((records.list.len(), records.of_this_boot().count()), (2, 1));
        records.list.clear();
        records.save().expect("remove");
        assert!(!path(&home, "demo").exists());
    }
}
