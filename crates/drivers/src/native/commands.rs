//! Commands that are about to use this host, of all homes: one that has prepared the host but has booted nothing yet would
//! be overlooked by the others. Each has a note, which counts for as long as the command lives.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::Result;
use ipnet::Ipv4Net;
use serde::{Deserialize, Serialize};

use crate::process::{self, Identity};

pub const DIR: &str = "commands";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    pub command: Identity,
    /// The network namespace that it works in.
    pub network: u64,
    /// Which it is about to use there.
    pub subnet: Ipv4Net,
}

/// This thread's network namespace.
pub fn network() -> u64 {
    std::fs::metadata("/proc/thread-self/ns/net").map_or(0, |namespace| namespace.ino())
}

fn file(run: &Path, pid: u32) -> PathBuf {
    run.join(DIR).join(format!("{pid}.json"))
}

/// That this command will use the host. Under the lock.
pub fn note(run: &Path, subnet: Ipv4Net) -> Result<()> {
    let command = process::identify(std::process::id())?;
    write(run, &Note { command, network: network(), subnet })
}

pub fn write(run: &Path, note: &Note) -> Result<()> {
    let file = file(run, note.command.pid);
    if let Some(dir) = file.parent() {
        fs_err::create_dir_all(dir)?;
    }
    let temporary = file.with_extension("new");
    fs_err::write(&temporary, serde_json::to_vec(note)?)?;
    fs_err::rename(temporary, file).map_err(Into::into)
}

/// It is done.
pub fn forget(run: &Path) {
    let _ = std::fs::remove_file(file(run, std::process::id()));
}

/// Those that live, but for this one; what is noted of dead ones is removed.
pub fn others(run: &Path) -> Vec<Note> {
    let notes = std::fs::read_dir(run.join(DIR)).into_iter().flatten().flatten();
    let read = |path: &Path| serde_json::from_slice::<Note>(&std::fs::read(path).ok()?).ok();
    let alive = |path: PathBuf| {
        let note = read(&path).filter(|note| process::is_alive(&note.command));
        if note.is_none() {
            let _ = std::fs::remove_file(path);
        }
        note
    };
    // Those that are being written have another ending.
    let notes = notes.map(|note| note.path()).filter(|path| path.extension().is_some_and(|e| e == "json"));
    notes.filter_map(alive).filter(|note| note.command.pid != std::process::id()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_live_count_and_dead_ones_do_not() {
        let run = tempfile::tempdir().unwrap();
        let subnet: Ipv4Net = "192.168.49.0/24".parse().unwrap();
        note(run.path(), subnet).unwrap();
        assert_eq!(others(run.path()), [], "this one is no other");
        let mut other = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let command = process::identify(other.id()).unwrap();
        let write = |name: &str, command: Identity| {
            let note = Note { command, network: network(), subnet };
            std::fs::write(run.path().join(DIR).join(name), serde_json::to_vec(&note).unwrap()).unwrap();
            note
        };
        write("1.json", Identity { boot_id: "before".into(), ..command.clone() });
        write("2.json", Identity { started: command.started + 1, ..command.clone() });
        let alive = write("3.json", command);
        assert_eq!(others(run.path()), [alive]);
        other.kill().unwrap();
        other.wait().unwrap();
        assert_eq!(others(run.path()), []);
        forget(run.path());
        assert_eq!(std::fs::read_dir(run.path().join(DIR)).unwrap().count(), 0);
    }
}
