//! Files that are either as they were or as they are to be, whatever happens in between, also a loss of power.
//!
//! The directory may be one in which another user writes while we are root: all is done by its descriptor, the half has a
//! name that cannot be guessed, and it is never a file that was there before.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags};

use crate::crash;

const SUFFIX: &str = ".new";

/// Writes beside the file, makes it durable, and renames. A test can kill us before, midway and after.
pub fn write(path: &Path, data: &[u8], mode: u32) -> io::Result<()> {
    let place = format!("write/{}", name(path));
    crash::place(&place, "before");
    write_with(path, data, mode, || crash::place(&place, "midway"))?;
    crash::place(&place, "after");
    Ok(())
}

/// The same, of a file that is one of many, or a node's: it belongs to who writes it.
pub fn replace(path: &Path, data: &[u8], mode: u32) -> io::Result<()> {
    put(path, data, mode, Owner::Writer, || ())
}

/// As [`write`], with another place midway.
pub fn write_with(path: &Path, data: &[u8], mode: u32, midway: impl FnOnce()) -> io::Result<()> {
    put(path, data, mode, Owner::Kept, midway)
}

#[derive(PartialEq, Eq)]
enum Owner {
    Writer,
    Kept,
}

fn put(path: &Path, data: &[u8], mode: u32, owner: Owner, midway: impl FnOnce()) -> io::Result<()> {
    let at = dir_of(path);
    std::fs::create_dir_all(at).map_err(|e| of_path(e, at))?;
    sweep(path);
    let written = (|| {
        let dir = open_dir(at)?;
        let half = Half::new(&dir, &name(path), mode)?;
        (&half.file).write_all(data)?;
        // The umask has no say.
        rustix::fs::fchmod(&half.file, Mode::from_raw_mode(mode))?;
        if owner == Owner::Kept {
            keep_owner(&half, path);
        }
        half.file.sync_all()?;
        midway();
        half.persist(path)?;
        // The rename itself is durable only when the directory is.
        dir.sync_all()
    })();
    written.map_err(|e| of_path(e, path))
}

/// Renames, and makes that durable.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::rename(from, to).map_err(|e| of_path(e, to))?;
    if dir_of(from) != dir_of(to) {
        sync_dir(from)?;
    }
    sync_dir(to)
}

/// Removes a file and halves of it, and makes that durable. One that is not there is no error.
pub fn remove(path: &Path) -> io::Result<()> {
    sweep(path);
    match std::fs::remove_file(path) {
        Ok(()) => sync_dir(path),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(of_path(e, path)),
    }
}

/// The directory that a path lies in is on the disk.
pub fn sync_dir(path: &Path) -> io::Result<()> {
    open_dir(dir_of(path)).and_then(|dir| dir.sync_all()).map_err(|e| of_path(e, path))
}

fn open_dir(dir: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(dir, flags, Mode::empty())?))
}

fn dir_of(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn of_path(error: io::Error, path: &Path) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// A file beside the one that is to be; removed unless it is put in its place.
struct Half<'a> {
    dir: &'a File,
    name: String,
    file: File,
    placed: bool,
}

impl Half<'_> {
    fn new<'a>(dir: &'a File, of: &str, mode: u32) -> io::Result<Half<'a>> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        // Named after us, so that it is known when its writer is dead.
        let name = format!(".{of}.{}.{:016x}{SUFFIX}", std::process::id(), u64::from_ne_bytes(random));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(dir, &name, flags, Mode::from_raw_mode(mode))?;
        Ok(Half { dir, name, file: file.into(), placed: false })
    }

    fn persist(mut self, path: &Path) -> io::Result<()> {
        rustix::fs::renameat(self.dir, &self.name, self.dir, path.file_name().unwrap_or_default())?;
        self.placed = true;
        Ok(())
    }
}

impl Drop for Half<'_> {
    fn drop(&mut self) {
        if !self.placed {
            let _ = rustix::fs::unlinkat(self.dir, &self.name, AtFlags::empty());
        }
    }
}

/// Removes what a writer of this file left that died half-way.
pub fn sweep(path: &Path) {
    let of = name(path);
    left_in(dir_of(path))
        .into_iter()
        .filter(|(half_of, _)| *half_of == of)
        .for_each(|(_, at)| drop(std::fs::remove_file(at)));
}

/// As [`sweep`], for all files of a directory.
pub fn sweep_all(dir: &Path) {
    left_in(dir).into_iter().for_each(|(_, at)| drop(std::fs::remove_file(at)));
}

/// Halves of dead writers: of which file, and where.
fn left_in(dir: &Path) -> Vec<(String, PathBuf)> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let (of, pid) = writer(&entry.file_name().into_string().ok()?)?;
            let dead = !Path::new("/proc").join(pid.to_string()).exists();
            dead.then(|| (of, entry.path()))
        })
        .collect()
}

/// `.config.json.1234.0123456789abcdef.new`; earlier versions left the random part out.
fn writer(half: &str) -> Option<(String, u32)> {
    let words = half.strip_prefix('.')?.strip_suffix(SUFFIX)?;
    let is_random = |word: &str| word.len() == 16 && word.bytes().all(|b| b.is_ascii_hexdigit());
    let numbered = words.rsplit_once('.').filter(|(_, last)| is_random(last)).map_or(words, |(rest, _)| rest);
    let (of, pid) = numbered.rsplit_once('.')?;
    Some((of.to_owned(), pid.parse().ok()?))
}

/// A file stays its owner's. A new one that is made by sudo in the caller's own directory is theirs.
fn keep_owner(half: &Half<'_>, path: &Path) {
    let name = path.file_name().unwrap_or_default();
    let there = rustix::fs::statat(half.dir, name, AtFlags::SYMLINK_NOFOLLOW);
    let (uid, gid) = match (there, half.dir.metadata()) {
        (Ok(there), _) => (there.st_uid, there.st_gid),
        (Err(_), Ok(dir)) => (dir.uid(), dir.gid()),
        _ => return,
    };
    // Only root may give files away, and only root needs to.
    let _ = std::os::unix::fs::fchown(half.file.as_fd(), Some(uid), Some(gid));
}

#[cfg(test)]
#[path = "atomic_tests.rs"]
mod tests;
