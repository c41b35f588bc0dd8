//! What is written beside an image's root file system.
//!
//! `manifest.json` is small, so that finding an image costs a millisecond; the checksums of its several
//! thousand files are in `files.json`. The manifest is written last: a directory without it is an
//! unfinished build.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::walk;

pub const MANIFEST: &str = "manifest.json";
pub const FILES: &str = "files.json";

/// What an image is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The image's name in the store, e.g. `v1.37.1-0123456789ab`.
    pub name: String,
    /// The Kubernetes version, e.g. `v1.37.1`.
    pub kubernetes: String,
    /// `amd64` or `arm64`, as container images call it.
    pub architecture: String,
    /// Component name → the version that was really built.
    pub components: BTreeMap<String, String>,
    /// Full references in containerd's store, sorted.
    pub images: Vec<String>,
    /// Where a component is not what its name says, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// When it was built (RFC 3339, UTC).
    pub built_at: String,
    /// Bytes of all regular files.
    pub size: u64,
    /// SHA-256 of `files.json`, so that the manifest vouches for all files.
    pub files_sha256: String,
}

/// The content of `files.json`: everything below `rootfs`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Files {
    pub files: BTreeMap<String, FileEntry>,
    /// Path → target.
    pub links: BTreeMap<String, String>,
    /// Older versions wrote none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub directories: BTreeMap<String, Access>,
}

/// Who may do what with a file or directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
}

impl Access {
    pub fn of(metadata: &std::fs::Metadata) -> Access {
        Access { mode: metadata.mode() & 0o7777, uid: metadata.uid(), gid: metadata.gid() }
    }
}

impl Files {
    pub fn read(dir: &Path) -> Result<Files> {
        let path = dir.join(FILES);
        let text = fs_err::read(&path)?;
        serde_json::from_slice(&text).with_context(|| format!("{} is not readable", path.display()))
    }

    /// Is it one of those that were recorded?
    pub fn names(&self, entry: &walk::Entry) -> bool {
        let (path, kind) = (entry.path.to_string_lossy(), entry.metadata.file_type());
        match kind {
            _ if kind.is_symlink() => self.links.contains_key(&*path),
            _ if kind.is_file() => self.files.contains_key(&*path),
            _ if kind.is_dir() => self.directories.is_empty() || self.directories.contains_key(&*path),
            _ => false,
        }
    }
}

/// A regular file as it was when the image was finished.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    pub size: u64,
    /// Seconds since 1970: whole seconds survive export and import.
    pub mtime: i64,
    pub sha256: String,
    /// Older versions wrote none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<Access>,
}

impl Manifest {
    /// `None` when the directory holds no finished image.
    pub fn read(dir: &Path) -> Result<Option<Manifest>> {
        let path = dir.join(MANIFEST);
        match fs_err::read(&path) {
            Ok(text) => Ok(Some(
                serde_json::from_slice(&text)
                    .with_context(|| format!("the image manifest {} is not readable", path.display()))?,
            )),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Atomic, because its presence means that the image is complete.
    pub fn write(&self, dir: &Path) -> Result<()> {
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        let temporary = dir.join(".manifest.json.new");
        fs_err::write(&temporary, text)?;
        fs_err::rename(temporary, dir.join(MANIFEST))?;
        Ok(())
    }
}

#[cfg(test)]
pub(crate) fn sample(name: &str, kubernetes: &str) -> Manifest {
    Manifest {
        name: name.into(),
        kubernetes: kubernetes.into(),
        architecture: crate::build::architecture().into(),
        components: BTreeMap::from([("etcd".into(), "v3.7.0".into())]),
        images: vec!["registry.k8s.io/pause:3.10.2".into()],
        notes: vec![],
        built_at: "2026-11-15T22:00:00Z".into(),
        size: 0,
        files_sha256: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comes_back_as_written_and_absence_is_no_error() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Manifest::read(dir.path()).unwrap(), None);
        let manifest = sample("v1.37.1-0", "v1.37.1");
        manifest.write(dir.path()).unwrap();
        assert_eq!(Manifest::read(dir.path()).unwrap(), Some(manifest));
    }

    #[test]
    fn garbage_is_named() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(MANIFEST), "{").unwrap();
        let error = Manifest::read(dir.path()).unwrap_err().to_string();
        assert!(error.contains(MANIFEST), "{error}");
    }
}
