//! Whose a home is: what root makes in a user's home is the user's, but for the machines' disks and the images.

use std::ffi::{CStr, CString};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;

use drivers::machine::disk::DISK;
use model::{Fault, Home, Reason};
use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Uid, chownat, openat, statat};

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
///
/// By descriptors, not by paths: the user may put links in the place of what we look at.
pub fn give_back(home: &Home) {
    let Ok(root) = rustix::fs::open(home.root(), DIRECTORY, Mode::empty()) else { return };
    let Ok(found) = rustix::fs::fstat(&root) else { return };
    if found.st_uid == 0 || !rustix::process::geteuid().is_root() {
        return;
    }
    let owner = Owner { uid: Uid::from_raw(found.st_uid), gid: Gid::from_raw(found.st_gid) };
    for name in children(&root) {
        match name.to_str() {
            // Below these lie roots of nodes, where it matters whose a file is.
            Ok("cache") => {
                let cache = owner.take(&root, &name, 1);
                let images = cache.and_then(|cache| below(&cache, c"node-images"));
                images.and_then(|images| owner.take(&images, c".lock", 0));
            }
            Ok("machines") => owner.take_machines(&root, &name),
            // What a registry stores is the registry's.
            Ok("profiles") => drop(owner.take(&root, &name, 2)),
            _ => drop(owner.take(&root, &name, usize::MAX)),
        }
    }
}

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

struct Owner {
    uid: Uid,
    gid: Gid,
}

impl Owner {
    /// What has this name there, and what lies below it, so many levels deep. Only what is root's, and has no other name,
    /// which might be one of the host's files. The directory, if it is one.
    fn take(&self, dir: &OwnedFd, name: &CStr, depth: usize) -> Option<OwnedFd> {
        let entry =
            openat(dir, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()).ok()?;
        let found = rustix::fs::fstat(&entry).ok()?;
        let is_dir = FileType::from_raw_mode(found.st_mode).is_dir();
        if found.st_uid == 0 && (is_dir || found.st_nlink == 1) {
            let _ = chownat(&entry, c"", Some(self.uid), Some(self.gid), AtFlags::EMPTY_PATH);
        }
        let opened = openat(&entry, c".", DIRECTORY, Mode::empty()).ok().filter(|_| is_dir)?;
        if depth > 0 {
            children(&opened).for_each(|child| drop(self.take(&opened, &child, depth - 1)));
        }
        Some(opened)
    }

    /// Keys and records, but not the disks beside them.
    fn take_machines(&self, root: &OwnedFd, name: &CStr) {
        let Some(machines) = self.take(root, name, 1) else { return };
        for machine in children(&machines).filter_map(|name| below(&machines, &name)) {
            let is_file = |name: &CString| {
                let found = statat(&machine, name, AtFlags::SYMLINK_NOFOLLOW);
                found.is_ok_and(|f| FileType::from_raw_mode(f.st_mode).is_file())
            };
            children(&machine)
                .filter(|name| name.as_bytes() != DISK.as_bytes() && is_file(name))
                .for_each(|name| drop(self.take(&machine, &name, 0)));
        }
    }
}

fn below(dir: &OwnedFd, name: &CStr) -> Option<OwnedFd> {
    openat(dir, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty()).ok()
}

fn children(dir: &OwnedFd) -> impl Iterator<Item = CString> + use<> {
    let entries = rustix::fs::Dir::read_from(dir).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_owned());
    names.filter(|name| !matches!(name.as_bytes(), b"." | b"..")).collect::<Vec<_>>().into_iter()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{chown, symlink};
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn only_what_lies_in_the_home_is_given_back() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let (outside, home) = (dir.path().join("outside"), Home::new(dir.path().join("home"), None));
        let at = |name: &str| home.root().join(name);
        for made in ["logs", "profiles/p/pki/deep", "machines/m/var", "cache/node-images/n"] {
            std::fs::create_dir_all(at(made)).unwrap();
        }
        std::fs::create_dir(&outside).unwrap();
        let files = ["logs/a", "machines/m/config.json", "machines/m/var/x", "profiles/p/config.json"];
        for file in files.map(at).iter().chain([&outside.join("shadow"), &outside.join("linked")]) {
            std::fs::write(file, "").unwrap();
        }
        symlink(&outside, at("logs/link")).unwrap();
        symlink(&outside, at("machines/m/link")).unwrap();
        std::fs::hard_link(outside.join("linked"), at("logs/linked")).unwrap();
        chown(home.root(), Some(1234), Some(1234)).unwrap();
        give_back(&home);
        let uid = |path: PathBuf| std::fs::symlink_metadata(path).unwrap().uid();
        for taken in ["logs/a", "logs/link", "machines/m", "machines/m/config.json", "profiles/p/config.json"]
        {
            assert_eq!(uid(at(taken)), 1234, "{taken}");
        }
        for kept in ["machines/m/var", "machines/m/var/x", "cache/node-images/n", "profiles/p/pki/deep"] {
            assert_eq!(uid(at(kept)), 0, "{kept}");
        }
        for kept in ["shadow", "linked", ""] {
            assert_eq!(uid(outside.join(kept)), 0, "{kept}");
        }
    }
}
