//! Is an image still what was built?
//!
//! The image is the lower layer of every node: who writes to it on the host changes them all. The quick check looks at size and modification time and hashes only what differs; the full
//! one hashes everything, and compares modes where they were recorded.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::hash;
use crate::manifest::{Access, FILES, FileEntry, Files, Manifest};
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
    #[error("has another mode or owner than when it was built")]
    Access,
    #[error("is not in the image's list of files")]
    Unlisted,
    #[error("cannot be read: {0}")]
    Unreadable(String),
}

/// How far to go.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    Quick,
    Full,
    /// Also the owners. Later they depend on who looks: in a user's own engine they are that user's.
    Arrival,
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
            let (sha256, access) = (hash::file(&full)?, Some(Access::of(&entry.metadata)));
            files.files.insert(path, FileEntry { size, mtime, sha256, access });
        } else if entry.metadata.is_dir() {
            files.directories.insert(path, Access::of(&entry.metadata));
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
    let directories = files.directories.iter().filter(|_| depth != Depth::Quick);
    for (name, access) in directories {
        let path = rootfs.join(name);
        directory(&path, access, depth).map_err(|damage| damaged(&path, damage))?;
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
    if let Some(access) = &expected.access {
        compare(access, &found, depth)?;
    }
    match hash::file(path) {
        Ok(sha256) if sha256 == expected.sha256 => Ok(()),
        Ok(_) => Err(Damage::Checksum),
        Err(error) => Err(unreadable(&error)),
    }
}

fn directory(path: &Path, expected: &Access, depth: Depth) -> Result<(), Damage> {
    let found = std::fs::symlink_metadata(path).map_err(|error| unreadable(&error))?;
    if !found.is_dir() {
        return Err(Damage::Kind);
    }
    compare(expected, &found, depth)
}

fn compare(expected: &Access, found: &Metadata, depth: Depth) -> Result<(), Damage> {
    let found = Access::of(found);
    let same = match depth {
        Depth::Quick => true,
        Depth::Full => found.mode == expected.mode,
        Depth::Arrival => found == *expected,
    };
    if same { Ok(()) } else { Err(Damage::Access) }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::sample;

    /// An image directory with two files and a link, recorded as a build does it.
    fn image_in(dir: &Path) -> Manifest {
        std::fs::create_dir_all(dir.join("rootfs/bin")).unwrap();
        std::fs::write(dir.join("rootfs/bin/a"), "content of a").unwrap();
        std::fs::write(dir.join("rootfs/b"), "b").unwrap();
        std::os::unix::fs::symlink("bin/a", dir.join("rootfs/link")).unwrap();
        let text = serde_json::to_vec(&record(&dir.join("rootfs")).unwrap()).unwrap();
        std::fs::write(dir.join(FILES), &text).unwrap();
        Manifest { files_sha256: hash::bytes(&text), ..sample("v1-x", "v1") }
    }

    fn set_mtime(path: &Path, seconds: u64) {
        let file = std::fs::File::options().write(true).open(path).unwrap();
        file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds)).unwrap();
    }

    #[test]
    fn a_sound_image_passes_and_a_touched_file_is_hashed() {
        let dir = tempfile::tempdir().unwrap();
        let manifest = image_in(dir.path());
        assert!(image(dir.path(), &manifest, Depth::Quick).is_ok());
        set_mtime(&dir.path().join("rootfs/b"), 1);
        assert!(image(dir.path(), &manifest, Depth::Quick).is_ok());
        assert!(image(dir.path(), &manifest, Depth::Full).is_ok());
    }

    #[test]
    fn damage_is_found_and_named() {
        type Case = (&'static str, fn(&Path), Damage);
        let cases: [Case; 6] = [
            ("rootfs/bin/a", |p| std::fs::remove_file(p).unwrap(), Damage::Missing),
            (
                "rootfs/bin/a",
                |p| std::fs::write(p, "short").unwrap(),
                Damage::Size { expected: 12, found: 5 },
            ),
            (
                "rootfs/bin/a",
                |p| {
                    std::fs::write(p, "CONTENT OF A").unwrap();
                    set_mtime(p, 1);
                },
                Damage::Checksum,
            ),
            ("rootfs/link", |p| std::fs::remove_file(p).unwrap(), Damage::Missing),
            (
                "rootfs/link",
                |p| {
                    std::fs::remove_file(p).unwrap();
                    std::fs::write(p, "").unwrap();
                },
                Damage::Kind,
            ),
            (FILES, |p| std::fs::write(p, "{}").unwrap(), Damage::Checksum),
        ];
        for (file, harm, expected) in cases {
            let dir = tempfile::tempdir().unwrap();
            let manifest = image_in(dir.path());
            harm(&dir.path().join(file));
            let error = image(dir.path(), &manifest, Depth::Quick).unwrap_err();
            assert_eq!((error.file, error.damage), (dir.path().join(file), expected));
        }
    }

    #[test]
    fn the_full_check_compares_modes_and_older_records_have_none() {
        use std::os::unix::fs::PermissionsExt as _;
        let chmod = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        for (name, mode) in [("rootfs/bin/a", 0o4755), ("rootfs/bin", 0o777)] {
            let dir = tempfile::tempdir().unwrap();
            let manifest = image_in(dir.path());
            chmod(&dir.path().join(name), mode);
            assert!(image(dir.path(), &manifest, Depth::Quick).is_ok());
            let error = image(dir.path(), &manifest, Depth::Full).unwrap_err();
            assert_eq!((error.file, error.damage), (dir.path().join(name), Damage::Access));
            let mut files = Files::read(dir.path()).unwrap();
            files.directories.clear();
            files.files.values_mut().for_each(|file| file.access = None);
            let text = serde_json::to_vec(&files).unwrap();
            assert!(!String::from_utf8_lossy(&text).contains("mode"));
            std::fs::write(dir.path().join(FILES), &text).unwrap();
            let manifest = Manifest { files_sha256: hash::bytes(&text), ..manifest };
            assert!(image(dir.path(), &manifest, Depth::Full).is_ok());
        }
    }

    #[test]
    fn only_the_full_check_sees_a_change_that_hides_its_time() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rootfs/b");
        let manifest = image_in(dir.path());
        let before = std::fs::metadata(&path).unwrap().mtime() as u64;
        std::fs::write(&path, "B").unwrap();
        set_mtime(&path, before);
        assert!(image(dir.path(), &manifest, Depth::Quick).is_ok());
        assert_eq!(image(dir.path(), &manifest, Depth::Full).unwrap_err().damage, Damage::Checksum);
    }
}
