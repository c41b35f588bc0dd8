//! Fills a node's `/var` from the image's.
//!
//! Container layers are large and never written to: a node gets them as hard links, so that a hundred
//! nodes share one copy on disk and in the page cache. Everything else (containerd's databases first of
//! all, which it opens for writing) is a real copy, because a write through a hard link would change the
//! image and all other nodes.

use std::fs::Metadata;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::Path;

use anyhow::{Context, Result};
use rustix::fs::{AtFlags, CWD, Dev, FileType, Gid, Mode, Timespec, Timestamps, Uid, XattrFlags};

use crate::walk::{self, Entry};

/// Trees below `/var` whose files containerd only ever reads or unlinks.
const SHARED: [&str; 2] = ["lib/containerd/io.containerd.content.v1.content/blobs", LAYERS];
/// Unpacked layers, each in a directory `fs` of a numbered one.
pub(crate) const LAYERS: &str = "lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots";

/// May this file (relative to `/var`) be shared by a hard link?
fn is_shared(path: &Path) -> bool {
    SHARED.iter().any(|tree| path.starts_with(tree))
}

/// Fills `dest` with what is below `source`, an image's `/var`.
pub fn var(source: &Path, dest: &Path) -> Result<()> {
    tree(source, dest, is_shared)
}

/// Fills `dest` with an unpacked layer of another node: all files as hard links, where that is possible.
pub fn link_tree(source: &Path, dest: &Path) -> Result<()> {
    tree(source, dest, |_| true)
}

/// A faithful copy without any sharing.
pub fn copy(source: &Path, dest: &Path) -> Result<()> {
    tree(source, dest, |_| false)
}

fn tree(source: &Path, dest: &Path, shared: impl Fn(&Path) -> bool) -> Result<()> {
    if !dest.exists() {
        fs_err::create_dir_all(dest)?;
    }
    attributes(source, dest, &fs_err::symlink_metadata(source)?)?;
    let entries = walk::tree(source)?;
    for entry in &entries {
        one(source, dest, entry, shared(&entry.path)).with_context(|| {
            format!("copying {} to {}", source.join(&entry.path).display(), dest.display())
        })?;
    }
    Ok(())
}

fn one(source: &Path, dest: &Path, entry: &Entry, shared: bool) -> io::Result<()> {
    let (from, to) = (source.join(&entry.path), dest.join(&entry.path));
    let metadata = &entry.metadata;
    let kind = metadata.file_type();
    if kind.is_dir() {
        match std::fs::create_dir(&to) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => return attributes(&from, &to, metadata),
        }
    }
    if shared && hard_link(&from, &to)? {
        return Ok(());
    }
    if kind.is_symlink() {
        std::os::unix::fs::symlink(std::fs::read_link(&from)?, &to)?;
    } else if kind.is_file() {
        std::fs::copy(&from, &to)?;
    } else if kind.is_socket() {
        // A socket belongs to the process that made it; a copy would be a lie.
        return Ok(());
    } else {
        // Overlay's whiteouts are character devices 0/0.
        let kind = FileType::from_raw_mode(metadata.mode());
        rustix::fs::mknodat(CWD, &to, kind, Mode::from_raw_mode(metadata.mode()), metadata.rdev() as Dev)?;
    }
    attributes(&from, &to, metadata)
}

/// `false` when the two are on different file systems, or the file has as many links as it can have.
fn hard_link(from: &Path, to: &Path) -> io::Result<bool> {
    match rustix::fs::linkat(CWD, from, CWD, to, AtFlags::empty()) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::XDEV | rustix::io::Errno::MLINK | rustix::io::Errno::PERM) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn attributes(from: &Path, to: &Path, metadata: &Metadata) -> io::Result<()> {
    let owner = (Some(Uid::from_raw(metadata.uid())), Some(Gid::from_raw(metadata.gid())));
    rustix::fs::chownat(CWD, to, owner.0, owner.1, AtFlags::SYMLINK_NOFOLLOW)?;
    if !metadata.is_symlink() {
        // After chown, which clears the set-user-id bit.
        std::fs::set_permissions(to, std::fs::Permissions::from_mode(metadata.mode() & 0o7777))?;
        xattrs(from, to)?;
    }
    let mtime = Timespec { tv_sec: metadata.mtime(), tv_nsec: metadata.mtime_nsec() as _ };
    let times = Timestamps { last_access: mtime, last_modification: mtime };
    rustix::fs::utimensat(CWD, to, &times, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(())
}

/// Opaque directories of overlay (`trusted.overlay.opaque`) and file capabilities are extended attributes.
fn xattrs(from: &Path, to: &Path) -> io::Result<()> {
    let mut names = [0u8; 1024];
    let length = match rustix::fs::llistxattr(from, &mut names) {
        Ok(0) | Err(rustix::io::Errno::NOTSUP) => return Ok(()),
        other => other?,
    };
    for name in names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        let name = std::ffi::OsStr::from_bytes(name);
        let mut value = vec![0u8; 64 * 1024];
        let length = rustix::fs::lgetxattr(from, name, &mut value[..])?;
        rustix::fs::lsetxattr(to, name, &value[..length], XattrFlags::empty())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYER: &str = "lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots/1/fs/bin";

    fn var_in(dir: &Path) {
        std::fs::create_dir_all(dir.join(LAYER)).unwrap();
        std::fs::create_dir_all(dir.join("tmp")).unwrap();
        std::fs::set_permissions(dir.join("tmp"), PermissionsExt::from_mode(0o1777)).unwrap();
        std::fs::write(dir.join(LAYER).join("program"), "x").unwrap();
        std::fs::write(dir.join("lib/containerd/meta.db"), "x").unwrap();
        std::fs::set_permissions(dir.join("lib/containerd/meta.db"), PermissionsExt::from_mode(0o600))
            .unwrap();
        std::os::unix::fs::symlink("nowhere", dir.join("link")).unwrap();
    }

    fn inode(path: &Path) -> u64 {
        std::fs::symlink_metadata(path).unwrap().ino()
    }

    #[test]
    fn layers_are_shared_and_everything_else_is_a_copy() {
        let dir = tempfile::tempdir().unwrap();
        let (source, dest) = (dir.path().join("image"), dir.path().join("node"));
        var_in(&source);
        var(&source, &dest).unwrap();
        let same = |path: &str| inode(&source.join(path)) == inode(&dest.join(path));
        assert!(same(&format!("{LAYER}/program")));
        assert!(!same("lib/containerd/meta.db"));
        assert_eq!(std::fs::read_link(dest.join("link")).unwrap(), Path::new("nowhere"));
        for path in ["tmp", "lib/containerd/meta.db"] {
            let stat = |root: &Path| {
                let metadata = std::fs::symlink_metadata(root.join(path)).unwrap();
                (metadata.mode(), metadata.uid(), metadata.mtime(), metadata.mtime_nsec())
            };
            assert_eq!(stat(&source).0, stat(&dest).0, "{path}");
            assert_eq!(stat(&source).1, stat(&dest).1, "{path}");
        }
    }

    #[test]
    fn a_copy_shares_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let (source, dest) = (dir.path().join("image"), dir.path().join("copy"));
        var_in(&source);
        copy(&source, &dest).unwrap();
        let program = format!("{LAYER}/program");
        assert_ne!(inode(&source.join(&program)), inode(&dest.join(&program)));
    }

    #[test]
    fn a_name_that_only_begins_like_a_shared_tree_is_not_shared() {
        assert!(is_shared(Path::new("lib/containerd/io.containerd.content.v1.content/blobs/sha256/1")));
        assert!(!is_shared(Path::new("lib/containerd/io.containerd.content.v1.content/blobs-2/x")));
        assert!(!is_shared(Path::new("lib/containerd/io.containerd.snapshotter.v1.overlayfs/metadata.db")));
    }

    #[test]
    fn what_cannot_be_copied_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let (source, dest) = (dir.path().join("image"), dir.path().join("node"));
        var_in(&source);
        std::fs::create_dir_all(dest.join("link")).unwrap();
        let error = format!("{:#}", var(&source, &dest).unwrap_err());
        assert!(error.contains("image/link"), "{error}");
    }
}
