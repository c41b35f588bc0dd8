//! Is an image still what was built?
//!
//! Nodes share the image's files by hard links and as overlay's lower layer, so a stray write would reach
//! every node. The quick check looks at size and modification time and hashes only what differs; the full
//! one hashes everything.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::hash;
use crate::manifest::{FILES, FileEntry, Files, Manifest};
use crate::walk;

/// A file of an image is not what the manifest says.
#[derive(Debug, thiserror::Error)]
#[error("the node image {image} is damaged: {file} {damage}")]
pub struct Damaged {
    pub image: String,
    pub file: PathBuf,
    pub damage: Damage,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    #[error("is missing")]
    Missing,
    #[error("has {found} bytes instead of {expected}")]
    Size { expected: u64, found: u64 },
    #[error("has another checksum than when it was built")]
    Checksum,
    #[error("is not the kind of file it was")]
    Kind,
    #[error("cannot be read: {0}")]
    Unreadable(String),
}

/// How far to go.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    Quick,
    Full,
}

/// Lists and hashes everything below `rootfs`.
pub fn record(rootfs: &Path) -> Result<Files> {
    let mut files = Files::default();
    for entry in walk::tree(rootfs)? {
        let path = entry.path.to_string_lossy().into_owned();
        let full = rootfs.join(&entry.path);
        if entry.metadata.is_symlink() {
            files.links.insert(path, fs_err::read_link(&full)?.to_string_lossy().into_owned());
        } else if entry.metadata.is_file() {
            let (size, mtime) = (entry.metadata.len(), entry.metadata.mtime());
            files.files.insert(path, FileEntry { size, mtime, sha256: hash::file(&full)? });
        }
    }
    Ok(files)
}

/// Compares the image in `dir` with what `files.json` says of it.
pub fn image(dir: &Path, manifest: &Manifest, depth: Depth) -> Result<(), Damaged> {
    let damaged = |file: &Path, damage| Damaged { image: manifest.name.clone(), file: file.into(), damage };
    let list = dir.join(FILES);
    let text = std::fs::read(&list).map_err(|error| damaged(&list, unreadable(&error)))?;
    // The list is the yardstick: it must be the one the manifest was written for.
    if hash::bytes(&text) != manifest.files_sha256 {
        return Err(damaged(&list, Damage::Checksum));
    }
    let files: Files = serde_json::from_slice(&text)
        .map_err(|error| damaged(&list, Damage::Unreadable(error.to_string())))?;
    let rootfs = dir.join("rootfs");
    for (name, entry) in &files.files {
        let path = rootfs.join(name);
        file(&path, entry, depth).map_err(|damage| damaged(&path, damage))?;
    }
    for (name, target) in &files.links {
        let path = rootfs.join(name);
        link(&path, target).map_err(|damage| damaged(&path, damage))?;
    }
    Ok(())
}

fn file(path: &Path, expected: &FileEntry, depth: Depth) -> Result<(), Damage> {
    let found = std::fs::symlink_metadata(path).map_err(|error| unreadable(&error))?;
    if !found.is_file() {
        return Err(Damage::Kind);
    }
    if found.len() != expected.size {
        return Err(Damage::Size { expected: expected.size, found: found.len() });
    }
    if depth == Depth::Quick && found.mtime() == expected.mtime {
        return Ok(());
    }
    match hash::file(path) {
        Ok(sha256) if sha256 == expected.sha256 => Ok(()),
        Ok(_) => Err(Damage::Checksum),
        Err(error) => Err(unreadable(&error)),
    }
}

fn link(path: &Path, target: &str) -> Result<(), Damage> {
    match std::fs::read_link(path) {
        Ok(found) if found == Path::new(target) => Ok(()),
        Ok(_) => Err(Damage::Checksum),
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Err(Damage::Kind),
        Err(error) => Err(unreadable(&error)),
    }
}

fn unreadable(error: &io::Error) -> Damage {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Damage::Missing,
        _ => Damage::Unreadable(error.to_string()),
    }
}
