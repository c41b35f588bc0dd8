//! Parts of the host's file system in a machine: directories of the user's, programs to be tried.
//!
//! A path of the node may lead over symbolic links of the node, so it is only followed where `/` is the
//! node's; by then the host is out of sight. Hence in two steps.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use anyhow::{Context, Result};
use nix::mount::{MsFlags, mount};
use rustix::fs::{CWD, StatVfsMountFlags};
use rustix::mount::{MoveMountFlags, OpenTreeFlags, move_mount, open_tree};

use crate::driver::Bind;
use crate::user_namespace;

pub fn take(wanted: &Bind) -> Result<OwnedFd> {
    open(&wanted.host)
}

pub fn open(path: &Path) -> Result<OwnedFd> {
    let flags =
        OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE;
    open_tree(CWD, path, flags).with_context(|| format!("take {} into the node", path.display()))
}

pub fn put(tree: &OwnedFd, wanted: &Bind) -> Result<()> {
    let at = Path::new(&wanted.node);
    place(tree, at)?;
    if wanted.read_only { make_read_only(at) } else { Ok(()) }
}

/// The place is made if it is not there.
pub fn place(tree: &OwnedFd, at: &Path) -> Result<()> {
    // By the descriptor: where this runs, /proc may be that of another pid namespace.
    let mode = rustix::fs::fstat(tree).context("look at what was taken")?.st_mode;
    let is_dir = rustix::fs::FileType::from_raw_mode(mode).is_dir();
    if is_dir {
        fs_err::create_dir_all(at)?;
    } else if !at.exists() {
        at.parent().map_or(Ok(()), fs_err::create_dir_all)?;
        fs_err::write(at, "")?;
    }
    move_mount(tree.as_fd(), "", CWD, at, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
        .with_context(|| format!("put a mount at {}", at.display()))
}

/// In a user namespace with what else it is: nobody there may take off what came with a mount of the host's. Elsewhere
/// without: a program of the user's may lie where none is run.
pub fn make_read_only(at: &Path) -> Result<()> {
    const KEPT: [(StatVfsMountFlags, MsFlags); 6] = [
        (StatVfsMountFlags::NOSUID, MsFlags::MS_NOSUID),
        (StatVfsMountFlags::NODEV, MsFlags::MS_NODEV),
        (StatVfsMountFlags::NOEXEC, MsFlags::MS_NOEXEC),
        (StatVfsMountFlags::NOATIME, MsFlags::MS_NOATIME),
        (StatVfsMountFlags::NODIRATIME, MsFlags::MS_NODIRATIME),
        (StatVfsMountFlags::RELATIME, MsFlags::MS_RELATIME),
    ];
    let has =
        rustix::fs::statvfs(at).with_context(|| format!("look at the mount of {}", at.display()))?.f_flag;
    let locked = user_namespace::is_own();
    let kept = KEPT.into_iter().filter(|(flag, _)| locked && has.contains(*flag)).map(|(_, flag)| flag);
    let flags =
        kept.fold(MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY, |all, flag| all | flag);
    mount(None::<&str>, at, None::<&str>, flags, None::<&str>)
        .with_context(|| format!("make {} read-only", at.display()))
}
