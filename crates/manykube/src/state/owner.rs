//! Whose a home is: what root makes in a user's home is the user's, but for the machines' disks and the images.

use std::os::unix::fs::{MetadataExt as _, lchown};
use std::path::{Path, PathBuf};

use drivers::machine::disk::DISK;
use model::{Fault, Home, Reason};

/// Only whose home it is may work with it: others could not read its keys.
pub fn is_own(home: &Home) -> Result<(), Fault> {
    let owner = std::fs::metadata(home.root()).map_or(0, |m| m.uid());
    if owner == rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    let message =
        format!("The home directory {} belongs to another user (uid {owner})", home.root().display());
    Err(Fault::new(Reason::HomePermission, message)
        .advice("Set MANYKUBE_HOME to a directory of yours, or run the same command as that user"))
}

/// At the end of a command that ran as root. What fails is found by the next one.
pub fn give_back(home: &Home) {
    let Ok(root) = std::fs::metadata(home.root()) else { return };
    if root.uid() == 0 || !rustix::process::geteuid().is_root() {
        return;
    }
    let owner = Owner { uid: root.uid(), gid: root.gid() };
    for entry in children(home.root()) {
        let path = home.root().join(&entry);
        match entry.to_str() {
            // Below these lie roots of nodes, where it matters whose a file is.
            Some("cache") => {
                owner.take(&path, 1);
                owner.take(&path.join("node-images/.lock"), 0);
            }
            Some("machines") => owner.take_machines(&path),
            // What a registry stores is the registry's.
            Some("profiles") => owner.take(&path, 2),
            _ => owner.take(&path, usize::MAX),
        }
    }
}

struct Owner {
    uid: u32,
    gid: u32,
}

impl Owner {
    /// `path` and what lies below it, so many levels deep. Only what is root's: nobody else's is taken.
    fn take(&self, path: &Path, depth: usize) {
        let Ok(found) = std::fs::symlink_metadata(path) else { return };
        if found.uid() == 0 {
            let _ = lchown(path, Some(self.uid), Some(self.gid));
        }
        if found.is_dir() && depth > 0 {
            children(path).for_each(|name| self.take(&path.join(name), depth - 1));
        }
    }

    /// Keys and records, but not the disks beside them.
    fn take_machines(&self, path: &Path) {
        self.take(path, 1);
        for machine in children(path).map(|name| path.join(name)) {
            let files = children(&machine).map(|name| machine.join(name));
            let is_disk = |file: &PathBuf| file.file_name().is_some_and(|name| name == DISK);
            files
                .filter(|f| !is_disk(f) && f.symlink_metadata().is_ok_and(|m| m.is_file()))
                .for_each(|f| self.take(&f, 0));
        }
    }
}

fn children(dir: &Path) -> impl Iterator<Item = std::ffi::OsString> {
    std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.file_name())
}
