//! Files in a machine that runs, opened from outside by way of its init's root. Links in the machine are
//! followed as the machine sees them: none leads out of it.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use anyhow::{Context, Result, ensure};
use model::Home;
use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, mkdirat, openat2, unlinkat};
use rustix::io::Errno;

use super::Paths;

/// The file at `path`; `None` when there is none.
pub fn open(home: &Home, machine: &str, path: &str) -> Result<Option<File>> {
    let root = root(home, machine)?;
    match at(&root, Path::new(path), OFlags::RDONLY, 0) {
        Ok(fd) => Ok(Some(File::from(fd))),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(e) => Err(e).with_context(|| format!("open {machine}:{path}")),
    }
}

/// A new file at `path`, or the one that is there, empty; directories above it are made.
pub fn create(home: &Home, machine: &str, path: &str, mode: u32) -> Result<File> {
    let root = root(home, machine)?;
    let path = Path::new(path);
    if let Some(parent) = path.parent() {
        make_dirs(&root, parent).with_context(|| format!("make {machine}:{}", parent.display()))?;
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
    let fd = at(&root, path, flags, mode).with_context(|| format!("write {machine}:{}", path.display()))?;
    Ok(File::from(fd))
}

/// Removes the file at `path`, if there is one.
pub fn remove(home: &Home, machine: &str, path: &str) -> Result<()> {
    let root = root(home, machine)?;
    let path = Path::new(path);
    let name = path.file_name().context("a path without a name")?;
    let parent = path.parent().unwrap_or(Path::new("/"));
    let removed = at(&root, parent, OFlags::PATH | OFlags::DIRECTORY, 0)
        .and_then(|parent| unlinkat(&parent, name, AtFlags::empty()));
    match removed {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(e) => Err(e).with_context(|| format!("remove {machine}:{}", path.display())),
    }
}

/// Whether `path` is a directory there.
pub fn is_dir(home: &Home, machine: &str, path: &str) -> Result<bool> {
    Ok(at(&root(home, machine)?, Path::new(path), OFlags::PATH | OFlags::DIRECTORY, 0).is_ok())
}

fn root(home: &Home, machine: &str) -> Result<OwnedFd> {
    let init = Paths::new(home, machine).running();
    let pid = init.with_context(|| format!("machine {machine} is not running"))?.pid;
    let flags = OFlags::PATH | OFlags::DIRECTORY;
    let root = rustix::fs::open(format!("/proc/{pid}/root"), flags, Mode::empty());
    let root = root.with_context(|| format!("open the root of {machine}"))?;
    // A machine that begins has the root of whoever boots it, which is nobody's to write to.
    let which = |found: rustix::fs::Stat| (found.st_dev, found.st_ino);
    let host = rustix::fs::stat("/").context("look at /")?;
    ensure!(which(rustix::fs::fstat(&root)?) != which(host), "machine {machine} is just booting: try again");
    Ok(root)
}

fn at(root: &OwnedFd, path: &Path, flags: OFlags, mode: u32) -> Result<OwnedFd, Errno> {
    openat2(root, path, flags | OFlags::CLOEXEC, Mode::from_raw_mode(mode), ResolveFlags::IN_ROOT)
}

fn make_dirs(root: &OwnedFd, dir: &Path) -> Result<()> {
    let mut parent = at(root, Path::new("/"), OFlags::PATH | OFlags::DIRECTORY, 0)?;
    let mut so_far = Path::new("/").to_owned();
    for part in dir.components() {
        let Component::Normal(name) = part else {
            ensure!(part == Component::RootDir, "{} is not a plain path", dir.display());
            continue;
        };
        so_far.push(name);
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        parent = match at(root, &so_far, flags, 0) {
            Err(Errno::NOENT) => {
                mkdirat(&parent, name, Mode::from_raw_mode(0o755))?;
                at(root, &so_far, flags, 0)?
            }
            opened => opened?,
        };
    }
    Ok(())
}
