//! containerd's store: links to the container images of the node image, which stay there, and databases of its own.
//! containerd reads what is behind a link, and removes no more than the link.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use fs_err as fs;
use model::node_spec::IMAGES_DIR;
use rustix::fs::{CWD, RenameFlags, renameat_with};

const STORE: &str = "/var/lib/containerd";
const BLOBS: &str = "io.containerd.content.v1.content/blobs/sha256";
/// Unpacked layers, each in a directory `fs` of a numbered one.
const LAYERS: &str = "io.containerd.snapshotter.v1.overlayfs/snapshots";

/// Before containerd starts.
pub fn fill() -> Result<()> {
    fill_from(Path::new(IMAGES_DIR), Path::new(STORE))
        .with_context(|| format!("fill {STORE} with links to {IMAGES_DIR}"))
}

fn fill_from(images: &Path, store: &Path) -> Result<()> {
    // Beside the store: one that was emptied in the node counts its layers from 1 again, and stays as it is.
    let mark = store.with_extension("filled");
    if mark.exists() && store.exists() {
        return Ok(());
    }
    let links = links(images)?;
    if store.exists() {
        links.iter().try_for_each(|link| give_back(&images.join(link), &store.join(link)))?;
    } else {
        // Beside its place: a store is there as a whole or not at all.
        let new = store.with_extension("new");
        remove(&new)?;
        copy(images, &new, Path::new(""), &links)?;
        base::atomic::rename(&new, store)?;
    }
    Ok(base::atomic::write(&mark, b"", 0o600)?)
}

/// What is only read: blobs, and the files of layers.
fn links(images: &Path) -> Result<BTreeSet<PathBuf>> {
    let mut all = BTreeSet::new();
    for blob in fs::read_dir(images.join(BLOBS))? {
        all.insert(Path::new(BLOBS).join(blob?.file_name()));
    }
    for layer in fs::read_dir(images.join(LAYERS))? {
        all.insert(Path::new(LAYERS).join(layer?.file_name()).join("fs"));
    }
    Ok(all)
}

fn copy(from: &Path, to: &Path, at: &Path, links: &BTreeSet<PathBuf>) -> Result<()> {
    let (source, target) = (from.join(at), to.join(at));
    let found = fs::symlink_metadata(&source)?;
    if links.contains(at) {
        symlink(&source, &target).with_context(|| format!("make the link {}", target.display()))?;
    } else if found.is_dir() {
        fs::create_dir_all(&target)?;
        for entry in fs::read_dir(&source)? {
            copy(from, to, &at.join(entry?.file_name()), links)?;
        }
        fs::set_permissions(&target, found.permissions())?;
    } else {
        fs::copy(&source, &target)?;
        fs::File::open(&target)?.sync_all()?;
    }
    Ok(())
}

/// Stores that an earlier version made have hard links to the node image, so that a write of the node changed it for
/// all. What is not the image's stays.
fn give_back(image: &Path, own: &Path) -> Result<()> {
    let beside = own.with_extension("old");
    remove(&beside)?;
    match std::fs::symlink_metadata(own) {
        Ok(found) if !found.is_symlink() && is_same(image, own)? => {
            symlink(image, &beside).with_context(|| format!("make the link {}", beside.display()))?;
            renameat_with(CWD, &beside, CWD, own, RenameFlags::EXCHANGE)
                .with_context(|| format!("put the link {} in place", own.display()))?;
            remove(&beside)
        }
        Err(e) if e.kind() != io::ErrorKind::NotFound => {
            Err(e).with_context(|| format!("look at {}", own.display()))
        }
        _ => Ok(()),
    }
}

/// The same names with the same sizes.
fn is_same(one: &Path, other: &Path) -> Result<bool> {
    let (here, there) = (fs::symlink_metadata(one)?, fs::symlink_metadata(other)?);
    if here.file_type() != there.file_type() {
        return Ok(false);
    }
    if !here.is_dir() {
        return Ok(here.len() == there.len());
    }
    let names = |dir: &Path| -> Result<BTreeSet<_>> {
        Ok(fs::read_dir(dir)?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<_>>()?)
    };
    let all = names(one)?;
    if all != names(other)? {
        return Ok(false);
    }
    for name in all {
        if !is_same(&one.join(&name), &other.join(&name))? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whatever it is.
fn remove(path: &Path) -> Result<()> {
    let removed = match std::fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(e) => Err(e),
    };
    match removed {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e.into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt};

    use super::*;

    const DATABASE: &str = "io.containerd.metadata.v1.bolt/meta.db";

    fn blob(root: &Path) -> PathBuf {
        root.join(BLOBS).join("0")
    }

    fn layer(root: &Path) -> PathBuf {
        root.join(LAYERS).join("1/fs")
    }

    fn images(root: &Path) {
        fs::create_dir_all(layer(root)).unwrap();
        fs::write(layer(root).join("program"), "program").unwrap();
        fs::set_permissions(root.join(LAYERS).join("1"), PermissionsExt::from_mode(0o700)).unwrap();
        for (path, text) in [(blob(root), "blob"), (root.join(DATABASE), "database")] {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    #[test]
    fn images_are_links_and_databases_are_copies() {
        let dir = tempfile::tempdir().unwrap();
        let (image, store) = (dir.path().join("image"), dir.path().join("containerd"));
        images(&image);
        // A first boot that was cut short.
        fs::create_dir_all(store.with_extension("new").join("half")).unwrap();
        fill_from(&image, &store).unwrap();
        assert_eq!(fs::read_link(blob(&store)).unwrap(), blob(&image));
        assert_eq!(fs::read_link(layer(&store)).unwrap(), layer(&image));
        assert_eq!(fs::read(store.join(DATABASE)).unwrap(), b"database");
        assert!(!fs::symlink_metadata(store.join(DATABASE)).unwrap().is_symlink());
        assert_eq!(fs::metadata(store.join(LAYERS).join("1")).unwrap().mode() & 0o777, 0o700);
        assert!(!store.with_extension("new").exists());
    }

    #[test]
    fn a_store_that_is_there_keeps_what_is_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let (image, store) = (dir.path().join("image"), dir.path().join("containerd"));
        images(&image);
        fill_from(&image, &store).unwrap();
        fs::write(store.join(DATABASE), "changed").unwrap();
        fs::write(store.join(BLOBS).join("own"), "own").unwrap();
        // An image that was removed.
        fs::remove_file(blob(&store)).unwrap();
        fill_from(&image, &store).unwrap();
        assert_eq!(fs::read(store.join(DATABASE)).unwrap(), b"changed");
        assert_eq!(fs::read(store.join(BLOBS).join("own")).unwrap(), b"own");
        assert!(fs::symlink_metadata(blob(&store)).is_err());
    }

    #[test]
    fn hard_links_of_an_earlier_version_become_links() {
        let dir = tempfile::tempdir().unwrap();
        let (image, store) = (dir.path().join("image"), dir.path().join("containerd"));
        images(&image);
        fs::create_dir_all(layer(&store)).unwrap();
        fs::create_dir_all(store.join(BLOBS)).unwrap();
        fs::hard_link(blob(&image), blob(&store)).unwrap();
        fs::hard_link(layer(&image).join("program"), layer(&store).join("program")).unwrap();
        fill_from(&image, &store).unwrap();
        assert_eq!(fs::read_link(blob(&store)).unwrap(), blob(&image));
        assert_eq!(fs::read_link(layer(&store)).unwrap(), layer(&image));
        let program = fs::metadata(layer(&image).join("program")).unwrap();
        assert_eq!(program.nlink(), 1, "nothing of the node image is in the store any more");
    }
    #[test]
    fn layers_that_are_not_the_images_stay() {
        let dir = tempfile::tempdir().unwrap();
        let (image, store) = (dir.path().join("image"), dir.path().join("containerd"));
        images(&image);
        let own = || fs::read(layer(&store).join("program")).unwrap();
        fs::create_dir_all(layer(&store)).unwrap();
        fs::write(layer(&store).join("program"), "another").unwrap();
        fs::write(layer(&store).join("library"), "").unwrap();
        fill_from(&image, &store).unwrap();
        assert_eq!(own(), b"another");
        // One that was emptied in the node uses the same numbers for other layers.
        fs::remove_file(layer(&store).join("library")).unwrap();
        fs::write(layer(&store).join("program"), "PROGRAM").unwrap();
        fill_from(&image, &store).unwrap();
        assert_eq!(own(), b"PROGRAM");
    }
}
