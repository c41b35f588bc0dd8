//! Copies of trees: the Debian root of a new image, a node's `/var`.

use std::fs::Metadata;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::Path;

use anyhow::{Context, Result};
use rustix::fs::{AtFlags, CWD, Dev, FileType, Gid, Mode, Timespec, Timestamps, Uid, XattrFlags};

use crate::walk::{self, Entry};

/// What the containerd that filled the image kept, below its root file system. Nodes see it there, read-only, and
/// their agents make links into it.
pub const CONTAINERD: &str = "var/lib/containerd";
/// Unpacked layers, each in a directory `fs` of a numbered one.
pub(crate) const LAYERS: &str = "io.containerd.snapshotter.v1.overlayfs/snapshots";

/// Fills `dest` with what is in the image's `/var`, without the container images.
pub fn var(rootfs: &Path, dest: &Path) -> Result<()> {
    tree(&rootfs.join("var"), dest, &|path| Path::new("var").join(path) == Path::new(CONTAINERD))
}

pub fn copy(source: &Path, dest: &Path) -> Result<()> {
    tree(source, dest, &|_| false)
}

fn tree(source: &Path, dest: &Path, left_out: &dyn Fn(&Path) -> bool) -> Result<()> {
    if !dest.exists() {
        fs_err::create_dir_all(dest)?;
    }
    attributes(source, dest, &fs_err::symlink_metadata(source)?)?;
    for entry in walk::tree_without(source, left_out)? {
        one(source, dest, &entry).with_context(|| {
            format!("copying {} to {}", source.join(&entry.path).display(), dest.display())
        })?;
    }
    Ok(())
}

fn one(source: &Path, dest: &Path, entry: &Entry) -> io::Result<()> {
    let (from, to) = (source.join(&entry.path), dest.join(&entry.path));
    let metadata = &entry.metadata;
    let kind = metadata.file_type();
    if kind.is_dir() {
        match std::fs::create_dir(&to) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => return attributes(&from, &to, metadata),
        }
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

    fn image_in(dir: &Path) {
        let databases = dir.join(CONTAINERD);
        std::fs::create_dir_all(&databases).unwrap();
        std::fs::write(databases.join("meta.db"), "x").unwrap();
        std::fs::create_dir_all(dir.join("var/tmp")).unwrap();
        std::fs::set_permissions(dir.join("var/tmp"), PermissionsExt::from_mode(0o1777)).unwrap();
        std::fs::write(dir.join("var/lib/file"), "x").unwrap();
        std::fs::set_permissions(dir.join("var/lib/file"), PermissionsExt::from_mode(0o600)).unwrap();
        std::os::unix::fs::symlink("nowhere", dir.join("var/link")).unwrap();
    }

    #[test]
    fn a_copy_is_faithful_and_shares_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let (source, dest) = (dir.path().join("image"), dir.path().join("copy"));
        image_in(&source);
        copy(&source, &dest).unwrap();
        assert_eq!(std::fs::read_link(dest.join("var/link")).unwrap(), Path::new("nowhere"));
        let look = |root: &Path, path: &str| std::fs::symlink_metadata(root.join(path)).unwrap();
        for path in ["var/tmp", "var/lib/file", "var/lib/containerd/meta.db"] {
            let stat = |root: &Path| {
                let found = look(root, path);
                (found.mode(), found.uid(), found.mtime(), found.mtime_nsec())
            };
            assert_eq!(stat(&source), stat(&dest), "{path}");
            assert_ne!(look(&source, path).ino(), look(&dest, path).ino(), "{path}");
        }
    }

    #[test]
    fn a_nodes_var_has_no_container_images() {
        let dir = tempfile::tempdir().unwrap();
        let (source, dest) = (dir.path().join("image"), dir.path().join("var"));
        image_in(&source);
        var(&source, &dest).unwrap();
        assert!(dest.join("lib/file").exists() && !dest.join("lib/containerd").exists());
    }

    #[test]
    fn what_cannot_be_copied_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let (source, dest) = (dir.path().join("image"), dir.path().join("node"));
        image_in(&source);
        std::fs::create_dir_all(dest.join("link")).unwrap();
        let error = format!("{:#}", var(&source, &dest).unwrap_err());
        assert!(error.contains("image/var/link"), "{error}");
    }
}
