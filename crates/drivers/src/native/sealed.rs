//! Directories of the host that nodes share and none may write to. Each is an overlay without an upper layer: root in a
//! node cannot make that writable, as it could a read-only bind mount.

use std::os::fd::OwnedFd;
use std::path::Path;

use anyhow::{Context, Result};
use nix::mount::{MntFlags, MsFlags, umount2};

use super::binds;
use super::mounts::{notes, special};

/// What is at `path` in `dir`, as a mount that is nowhere yet. `empty` is the second directory that such an overlay
/// must have; it is the same again afterwards.
pub fn take(dir: &Path, path: &Path, empty: &Path) -> Result<OwnedFd> {
    let options = format!("lowerdir={}:{}{}", dir.display(), empty.display(), notes());
    special("overlay", empty, "overlay", MsFlags::MS_RDONLY, &options)?;
    let tree = binds::open(&empty.join(path));
    umount2(empty, MntFlags::MNT_DETACH).context("take an overlay off its first place")?;
    tree
}
