//! Notes on the host about control planes that come to etcd or leave it. A note is a hint for the next command, which
//! asks etcd: no disk is removed because of one.

use std::path::PathBuf;

use anyhow::Result;
use bootstrap::paths::OUTSIDE;
use drivers::machine::files;
use model::{Cluster, Home};
use plan::Membership;

use super::channel::Machines;
use super::look;
use crate::state::atomic;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Note {
    /// A command is about to change whether it is a member.
    Unsure,
    /// etcd confirmed that it is no member.
    Left,
    /// Another control plane's copy of etcd's data was taken. Its own is whole until it joins again.
    Replaced,
}

impl Note {
    const ALL: [Note; 3] = [Note::Unsure, Note::Left, Note::Replaced];

    fn word(self) -> &'static str {
        match self {
            Note::Unsure => "unsure",
            Note::Left => "left",
            Note::Replaced => "replaced",
        }
    }
}

fn path(home: &Home, profile: &str, machine: &str) -> PathBuf {
    home.profile(profile).join("membership").join(machine)
}

pub fn read(home: &Home, profile: &str, machine: &str) -> Option<Note> {
    match std::fs::read_to_string(path(home, profile, machine)) {
        // A word of a later version is a hint as well.
        Ok(word) => Some(Note::ALL.into_iter().find(|n| n.word() == word).unwrap_or(Note::Unsure)),
        // An earlier version had it in the machine.
        Err(_) => files::exists(home, machine, OUTSIDE).then_some(Note::Unsure),
    }
}

pub fn write(home: &Home, profile: &str, machine: &str, note: Note) -> Result<()> {
    Ok(atomic::write(&path(home, profile, machine), note.word().as_bytes(), 0o600)?)
}

/// It is a member, or there is no such machine any more.
pub fn clear(home: &Home, profile: &str, machine: &str) -> Result<()> {
    atomic::remove(&path(home, profile, machine))?;
    if files::exists(home, machine, OUTSIDE) { files::remove(home, machine, OUTSIDE) } else { Ok(()) }
}

/// Of the machine of a control plane. In a cluster that is not set up yet, all have still to make their data.
pub async fn of(
    home: &Home,
    profile: &str,
    driver: &Machines,
    machine: &str,
    configured: bool,
) -> Membership {
    judge(read(home, profile, machine), look::has_etcd_data(home, driver, machine).await, configured)
}

fn judge(note: Option<Note>, has_data: bool, configured: bool) -> Membership {
    match note {
        Some(Note::Left | Note::Replaced) => Membership::Left,
        Some(Note::Unsure) if has_data => Membership::Unsure,
        Some(Note::Unsure) => Membership::Lost,
        None if configured && !has_data => Membership::Lost,
        None => Membership::Joined,
    }
}

/// Control planes that are no members of etcd and stay so, for the election among its members.
pub fn left(home: &Home, cluster: &Cluster) -> Vec<String> {
    let planes = cluster.control_planes().map(|n| cluster.machine(n));
    planes.filter(|m| matches!(read(home, &cluster.name, m), Some(Note::Left | Note::Replaced))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_come_and_go() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path(), None);
        let note = || read(&home, "demo", "demo-m02");
        assert_eq!(note(), None);
        for wanted in Note::ALL {
            write(&home, "demo", "demo-m02", wanted).unwrap();
            assert_eq!(note(), Some(wanted));
        }
        clear(&home, "demo", "demo-m02").unwrap();
        clear(&home, "demo", "demo-m02").unwrap();
        assert_eq!(note(), None);
    }

    #[test]
    fn a_mark_of_an_earlier_version_is_a_hint() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path(), None);
        let var = dir.path().join("machines/demo-m02/var/lib/minikube");
        std::fs::create_dir_all(&var).unwrap();
        std::fs::write(var.join("outside"), "").unwrap();
        let note = || read(&home, "demo", "demo-m02");
        assert_eq!(judge(note(), false, true), Membership::Lost);
        assert_eq!(judge(note(), true, true), Membership::Unsure);
        clear(&home, "demo", "demo-m02").unwrap();
        assert_eq!(judge(note(), true, true), Membership::Joined);
    }
}
