//! A cache of images may serve several homes. It lists them, so that nothing is taken from under another one's
//! machines: a file in `homes` for each, which holds its path.

use std::ffi::OsStr;
use std::fmt;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use model::Home;

use super::Paths;

const HOMES: &str = "homes";

/// A machine whose root lies in a cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// None where the home cannot be looked at.
    machine: Option<String>,
    /// None if it is the one that asks.
    home: Option<PathBuf>,
}

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.machine {
            Some(machine) => write!(f, "node \"{machine}\"")?,
            None => write!(f, "a node")?,
        }
        self.home.as_ref().map_or(Ok(()), |home| write!(f, " of the home {}", home.display()))
    }
}

/// Before a machine of this home lies on an image.
pub fn note(home: &Home) -> Result<()> {
    let root = real(home.root());
    let dir = home.cache().join(HOMES);
    let file = dir.join(&image::hash::bytes(root.as_os_str().as_bytes())[..16]);
    if std::fs::read(&file).is_ok_and(|known| known == root.as_os_str().as_bytes()) {
        return Ok(());
    }
    // A home that joins sweeps: the list does not grow with homes that are gone.
    others(home);
    let write = || -> std::io::Result<()> {
        std::fs::create_dir_all(&dir)?;
        let mut new = tempfile::NamedTempFile::new_in(&dir)?;
        new.write_all(root.as_os_str().as_bytes())?;
        new.as_file().sync_all()?;
        new.persist(&file)?;
        std::fs::File::open(&dir)?.sync_all()
    };
    write().with_context(|| format!("note in {} that this home uses it", dir.display()))
}

/// A machine whose root lies on this directory, running or not, in whichever home.
pub fn on_image(home: &Home, rootfs: &Path) -> Option<User> {
    let rootfs = real(rootfs);
    let own = user(home.root(), |image| image == rootfs).map(|user| User { home: None, ..user });
    own.or_else(|| others(home).iter().find_map(|root| user(root, |image| image == rootfs)))
}

/// Another home than this one that has machines on images of this cache.
pub fn other_user(home: &Home) -> Option<User> {
    let cache = real(home.cache());
    others(home).iter().find_map(|root| user(root, |image| image.starts_with(&cache)))
}

fn user(root: &Path, lies_there: impl Fn(&Path) -> bool) -> Option<User> {
    let home = Home::new(root, None);
    let entries = match std::fs::read_dir(home.machines()) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return None,
        // What cannot be looked at may be there.
        Err(_) => return Some(User { machine: None, home: Some(root.to_owned()) }),
    };
    let mut names = entries.flatten().filter_map(|e| e.file_name().into_string().ok());
    let found = names.find(|n| Paths::new(&home, n).image_rootfs().is_ok_and(|i| lies_there(&real(&i))))?;
    Some(User { machine: Some(found), home: Some(root.to_owned()) })
}

/// Homes that are gone are forgotten.
fn others(home: &Home) -> Vec<PathBuf> {
    let own = real(home.root());
    let mut homes = Vec::new();
    for entry in std::fs::read_dir(home.cache().join(HOMES)).into_iter().flatten().flatten() {
        // One that is being written.
        if entry.file_name().as_bytes().starts_with(b".") {
            continue;
        }
        let Ok(path) = std::fs::read(entry.path()) else { continue };
        let root = PathBuf::from(OsStr::from_bytes(&path));
        let gone = |e: std::io::Error| e.kind() == std::io::ErrorKind::NotFound;
        if std::fs::symlink_metadata(root.join("machines")).is_err_and(gone) {
            let _ = std::fs::remove_file(entry.path());
        } else if root != own {
            homes.push(root);
        }
    }
    homes.sort();
    homes
}

/// However it was written.
fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_of_all_homes_count_and_homes_that_are_gone_do_not() {
        let dir = tempfile::tempdir().expect("a directory");
        let cache = dir.path().join("a/cache");
        let a = Home::new(dir.path().join("a"), None);
        let b = Home::new(dir.path().join("b"), Some(cache.clone()));
        let rootfs = cache.join("node-images/v1-x/rootfs");
        std::fs::create_dir_all(&rootfs).expect("an image");
        let machine = b.machine("m");
        std::fs::create_dir_all(&machine).expect("a machine");
        let record = serde_json::json!({ "Driver": { "ImageRootfs": rootfs } });
        std::fs::write(machine.join("config.json"), record.to_string()).expect("a record");
        for home in [&a, &b, &b] {
            note(home).expect("a note");
        }
        let shown = |user: Option<User>| user.map(|user| user.to_string()).unwrap_or_default();
        let elsewhere = format!("node \"m\" of the home {}", real(b.root()).display());
        assert_eq!(shown(on_image(&a, &rootfs)), elsewhere);
        assert_eq!(shown(on_image(&b, &rootfs)), "node \"m\"");
        assert_eq!((shown(other_user(&a)), other_user(&b)), (elsewhere, None));
        assert_eq!(on_image(&a, &cache.join("node-images/v2-x/rootfs")), None);
        std::fs::remove_dir_all(b.root()).expect("remove a home");
        assert_eq!((on_image(&a, &rootfs), other_user(&a)), (None, None));
        // The home without any machines has gone from the list as well.
        assert_eq!(std::fs::read_dir(cache.join(HOMES)).expect("a list").count(), 0);
    }
}
