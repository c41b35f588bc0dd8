//! The store of unpacked node images: `<cache>/node-images/<name>/{rootfs,files.json,manifest.json}`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::archive::{self, Progress};
use crate::check::{self, Damaged, Depth};
use crate::clone;
use crate::manifest::Manifest;
use crate::registry::{Label, parts};
use crate::strict;

/// Marks of directories that are not, or no longer, images.
pub(crate) const IMPORTING: &str = ".import-";
const REMOVING: &str = ".removing-";
/// Marks an image that was not built here.
const IMPORTED: &str = ".imported";
/// The digests of manifests in registries that an image came with, or was given.
const DIGESTS: &str = "digests.json";

/// The images below one cache directory.
#[derive(Debug, Clone)]
pub struct Store {
    pub(crate) cache: PathBuf,
}

/// One finished image.
#[derive(Debug, Clone)]
pub struct NodeImage {
    pub name: String,
    pub dir: PathBuf,
    pub manifest: Manifest,
}

impl Store {
    /// `cache` is the home's cache directory, e.g. `~/.manykube/cache`. Nothing is created yet.
    pub fn new(cache: &Path) -> Store {
        Store { cache: cache.to_owned() }
    }

    /// All finished images, the newest Kubernetes first.
    pub fn list(&self) -> Result<Vec<NodeImage>> {
        let mut images = Vec::new();
        let entries = match fs_err::read_dir(self.images_dir()) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(images),
            entries => entries?,
        };
        // Who is not its owner cannot, and need not.
        let _ = close(&self.images_dir());
        for entry in entries {
            let entry = entry?;
            // A leading dot marks what is being unpacked or removed.
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            // One that cannot be read is not one; what is wrong with it must not stop the others.
            match NodeImage::open(&entry.path()) {
                Ok(image) => images.extend(image),
                Err(error) => tracing::warn!("{}: {error:#}", entry.path().display()),
            }
        }
        images.sort_by(|a, b| order(b).cmp(&order(a)));
        Ok(images)
    }

    /// The image of exactly this Kubernetes version; of several, the one built last. One from elsewhere, which says
    /// itself when that was, does not take the place of one that was built here.
    pub fn find(&self, kubernetes_version: &str) -> Result<Option<NodeImage>> {
        Ok(self.list()?.into_iter().find(|image| image.manifest.kubernetes == kubernetes_version))
    }

    /// The image of this name.
    pub fn get(&self, name: &str) -> Result<NodeImage> {
        if let Some(image) = self.open(name)? {
            return Ok(image);
        }
        let names: Vec<String> = self.list()?.into_iter().map(|image| image.name).collect();
        bail!("there is no node image {name}; there are: {}", or_none(&names))
    }

    /// The image that a digest of a registry stands for.
    pub fn by_digest(&self, digest: &str) -> Result<Option<NodeImage>> {
        Ok(self.list()?.into_iter().find(|image| image.digests().iter().any(|d| d == digest)))
    }

    /// The very image that a registry or an engine has, by what that says of itself.
    pub fn same(&self, label: &Label) -> Result<Option<NodeImage>> {
        Ok(self.list()?.into_iter().find(|image| image.manifest.files_sha256 == label.files))
    }

    /// The image that a profile names: one of the store, or one of a registry by its digest.
    pub fn named(&self, name: &str) -> Result<NodeImage> {
        let digest = name.split_once('@').map(|(_, digest)| digest);
        match digest.map(|digest| self.by_digest(digest)).transpose()?.flatten() {
            Some(image) => Ok(image),
            None => self.get(name),
        }
    }

    /// Removes an image. One that a node (running or stopped) is made of must not be removed: the caller knows the
    /// profiles.
    pub fn remove(&self, name: &str) -> Result<()> {
        let dir = self.images_dir().join(name);
        if name.contains('/') || name.starts_with('.') || !dir.is_dir() {
            self.get(name)?;
        }
        let _lock = self.exclusive()?;
        // Out of sight first, so that an interrupted removal leaves no half image.
        let doomed = self.images_dir().join(format!("{REMOVING}{name}"));
        fs_err::rename(&dir, &doomed)?;
        fs_err::remove_dir_all(&doomed)?;
        Ok(())
    }

    /// Writes an image to one `.tar.zst` file.
    pub fn export(&self, name: &str, file: &Path, progress: &Progress) -> Result<()> {
        let image = self.get(name)?;
        image.check()?;
        archive::export(&image, file, progress)
            .with_context(|| format!("exporting the node image {name} to {}", file.display()))
    }

    /// As [`Store::export`], to whoever reads it.
    pub fn export_to(&self, name: &str, to: impl std::io::Write, progress: &Progress) -> Result<()> {
        let image = self.get(name)?;
        image.check()?;
        archive::write(&image, to, progress).with_context(|| format!("exporting the node image {name}"))
    }

    /// Takes an image from a file that `export` wrote, after verifying all checksums.
    pub fn import(&self, file: &Path, progress: &Progress) -> Result<NodeImage> {
        archive::import(self, file, progress)
            .with_context(|| format!("importing a node image from {}", file.display()))
    }

    /// For changes other than a build, which has a lock of its own because it takes minutes. Whoever holds it
    /// knows that what an interrupted import or removal left is of no use to anybody.
    pub(crate) fn exclusive(&self) -> Result<fs_err::File> {
        self.make_images_dir()?;
        let lock = fs_err::File::create(self.images_dir().join(".lock"))?;
        lock.file().lock()?;
        sweep(&self.images_dir(), &[IMPORTING, REMOVING])?;
        Ok(lock)
    }

    pub(crate) fn open(&self, name: &str) -> Result<Option<NodeImage>> {
        NodeImage::open(&self.images_dir().join(name))
    }

    pub(crate) fn make_images_dir(&self) -> Result<()> {
        make_closed(&self.images_dir())
    }

    pub(crate) fn make_build_dir(&self) -> Result<()> {
        make_closed(&self.build_dir())
    }

    pub(crate) fn images_dir(&self) -> PathBuf {
        self.cache.join("node-images")
    }

    /// Built components, by what they are made of.
    pub(crate) fn build_dir(&self) -> PathBuf {
        self.cache.join("build")
    }
}

impl NodeImage {
    fn open(dir: &Path) -> Result<Option<NodeImage>> {
        let Some(manifest) = Manifest::read(dir)? else { return Ok(None) };
        Ok(Some(NodeImage { name: manifest.name.clone(), dir: dir.to_owned(), manifest }))
    }

    /// The lower directory of the nodes' overlay root.
    pub fn rootfs(&self) -> PathBuf {
        self.dir.join("rootfs")
    }

    /// Milliseconds: size and modification time of every file; one that differs is hashed.
    pub fn check(&self) -> Result<(), Damaged> {
        check::image(&self.dir, &self.manifest, Depth::Quick)
    }

    /// Seconds: the checksum of every file.
    pub fn verify(&self) -> Result<(), Damaged> {
        check::image(&self.dir, &self.manifest, Depth::Full)
    }

    pub fn is_built_here(&self) -> bool {
        !self.dir.join(IMPORTED).exists()
    }

    pub(crate) fn mark_imported(&self) -> Result<()> {
        Ok(fs_err::write(self.dir.join(IMPORTED), "")?)
    }

    /// For one that comes from elsewhere: every file is what its record says, and is in it.
    pub(crate) fn verify_arrival(&self) -> Result<()> {
        check::image(&self.dir, &self.manifest, Depth::Arrival)?;
        strict::listed(&self.dir, &self.manifest)
    }

    /// What it is called in registries.
    fn digests(&self) -> Vec<String> {
        let read = std::fs::read(self.dir.join(DIGESTS)).ok();
        read.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
    }

    /// It is called so from now on.
    pub fn add_digest(&self, digest: &str) -> Result<()> {
        let mut digests = self.digests();
        if digests.iter().any(|d| d == digest) {
            return Ok(());
        }
        digests.push(digest.to_owned());
        let new = self.dir.join(format!(".{DIGESTS}.new"));
        fs_err::write(&new, serde_json::to_vec(&digests)?)?;
        Ok(fs_err::rename(new, self.dir.join(DIGESTS))?)
    }

    /// Bytes of all files but those below `/var`.
    pub fn system_size(&self) -> Result<u64> {
        parts::size(self, parts::Part::System)
    }

    /// Fills a node's `/var` with all but the container images, which stay here.
    pub fn clone_var(&self, dest: &Path) -> Result<()> {
        clone::var(&self.rootfs(), dest)
            .with_context(|| format!("filling {} from the node image {}", dest.display(), self.name))
    }
}

/// Removes directories whose names begin so.
pub(crate) fn sweep(dir: &Path, prefixes: &[&str]) -> Result<()> {
    for entry in fs_err::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        let stale = prefixes.iter().any(|prefix| name.as_encoded_bytes().starts_with(prefix.as_bytes()));
        if stale && entry.file_type()?.is_dir() {
            fs_err::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

/// Newest Kubernetes first, by number and not by letter; then what was built here; then the latest build.
fn order(image: &NodeImage) -> (Vec<u64>, bool, &str) {
    let version = image.manifest.kubernetes.trim_start_matches('v');
    let numbers = version.split('.').map(|n| n.parse().unwrap_or(0));
    (numbers.collect(), image.is_built_here(), &image.manifest.built_at)
}

/// Only its owner's: a root file system has programs that make everybody root.
fn make_closed(dir: &Path) -> Result<()> {
    fs_err::create_dir_all(dir)?;
    Ok(close(dir)?)
}

fn close(dir: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    match std::fs::metadata(dir)?.permissions().mode() & 0o077 {
        0 => Ok(()),
        _ => std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o700)),
    }
}

fn or_none(names: &[String]) -> String {
    if names.is_empty() { "none".into() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::sample;

    fn put(store: &Store, name: &str, version: &str, built_at: &str) {
        let dir = store.images_dir().join(name);
        std::fs::create_dir_all(dir.join("rootfs")).unwrap();
        let manifest = Manifest { built_at: built_at.into(), ..sample(name, version) };
        manifest.write(&dir).unwrap();
    }

    #[test]
    fn finds_the_latest_build_of_a_version_and_lists_by_number() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(dir.path());
        assert!(store.list().unwrap().is_empty());
        put(&store, "v1.9.3-a", "v1.9.3", "2026-01-01T00:00:00Z");
        put(&store, "v1.37.1-a", "v1.37.1", "2026-01-01T00:00:00Z");
        put(&store, "v1.37.1-b", "v1.37.1", "2026-02-01T00:00:00Z");
        // An unfinished build and a removal under way are no images.
        std::fs::create_dir_all(store.images_dir().join("v1.36.4-a/rootfs")).unwrap();
        std::fs::create_dir_all(store.images_dir().join(".removing-x")).unwrap();
        let names: Vec<_> = store.list().unwrap().into_iter().map(|i| i.name).collect();
        assert_eq!(names, ["v1.37.1-b", "v1.37.1-a", "v1.9.3-a"]);
        assert_eq!(store.find("v1.37.1").unwrap().unwrap().name, "v1.37.1-b");
        assert!(store.find("v1.36.4").unwrap().is_none());
    }

    #[test]
    fn an_image_from_elsewhere_does_not_take_the_place_of_a_build() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(dir.path());
        put(&store, "v1.37.1-a", "v1.37.1", "2026-01-01T00:00:00Z");
        put(&store, "v1.37.1-evil", "v1.37.1", "2099-01-01T00:00:00Z");
        store.get("v1.37.1-evil").unwrap().mark_imported().unwrap();
        assert_eq!(store.find("v1.37.1").unwrap().unwrap().name, "v1.37.1-a");
        store.remove("v1.37.1-a").unwrap();
        assert_eq!(store.find("v1.37.1").unwrap().unwrap().name, "v1.37.1-evil");
    }

    #[test]
    fn the_store_is_its_owners_alone() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(dir.path());
        // As older versions left it.
        put(&store, "v1.37.1-a", "v1.37.1", "2026-01-01T00:00:00Z");
        let set =
            |mode| std::fs::set_permissions(store.images_dir(), PermissionsExt::from_mode(mode)).unwrap();
        let mode = || std::fs::metadata(store.images_dir()).unwrap().permissions().mode() & 0o7777;
        set(0o755);
        store.list().unwrap();
        assert_eq!(mode(), 0o700);
        set(0o755);
        drop(store.exclusive().unwrap());
        assert_eq!(mode(), 0o700);
    }

    #[test]
    fn remove_takes_the_directory_and_names_what_there_is_otherwise() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(dir.path());
        put(&store, "v1.37.1-a", "v1.37.1", "2026-01-01T00:00:00Z");
        let error = store.remove("nope").unwrap_err().to_string();
        assert!(error.contains("nope") && error.contains("v1.37.1-a"), "{error}");
        // What an interrupted removal left goes too.
        std::fs::create_dir_all(store.images_dir().join(".removing-x/rootfs")).unwrap();
        store.remove("v1.37.1-a").unwrap();
        let left = std::fs::read_dir(store.images_dir()).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(left.collect::<Vec<_>>(), [".lock"]);
    }
}
