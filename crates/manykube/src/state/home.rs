//! Which directory is home.

use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use model::{Fault, Home, Reason};

/// Made by every command, as minikube does.
const DIRECTORIES: [&str; 7] = ["certs", "machines", "cache", "config", "addons", "files", "logs"];

/// Under the name `minikube` we live where minikube does, else in a place of our own.
pub fn resolve(tool: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<Home, Fault> {
    let set = |name: &str| env(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let (named, default) = match tool {
        "minikube" => (set("MINIKUBE_HOME").map(minikube_home), ".minikube"),
        _ => (set("MANYKUBE_HOME"), ".manykube"),
    };
    let root = match named.or_else(|| set("HOME").map(|h| h.join(default))) {
        Some(root) => root,
        None => {
            return Err(Fault::new(Reason::HomeMkdir, "Neither HOME nor MANYKUBE_HOME is set")
                .advice("Set MANYKUBE_HOME to a directory of yours"));
        }
    };
    let root = std::path::absolute(&root)
        .map_err(|e| Fault::new(Reason::HomeMkdir, format!("{}: {e}", root.display())))?;
    Ok(Home::new(root, set("MANYKUBE_CACHE")))
}

fn minikube_home(dir: PathBuf) -> PathBuf {
    if dir.file_name().is_some_and(|n| n == ".minikube") { dir } else { dir.join(".minikube") }
}

pub fn create(home: &Home) -> Result<(), Fault> {
    make(home.root())?;
    only_ours(home.root())?;
    DIRECTORIES.iter().try_for_each(|name| make(&home.root().join(name)))
}

/// A user who may write to it could put a program there that root runs.
fn only_ours(root: &Path) -> Result<(), Fault> {
    let Ok(found) = std::fs::metadata(root) else { return Ok(()) };
    let set = |name: &str| crate::host::env(name).filter(|value| !value.is_empty());
    let caller = Caller {
        root: crate::host::is_root(),
        by: ["SUDO_UID", "PKEXEC_UID"].into_iter().find_map(|name| set(name)?.parse().ok()),
        // By its name, or by a command that looked at it before the engine was asked to run this one.
        meant: ["MANYKUBE_HOME", "MINIKUBE_HOME", crate::inside::INSIDE]
            .iter()
            .any(|name| set(name).is_some()),
    };
    let (message, advice) = match objection(found.uid(), found.gid(), found.mode(), &caller) {
        None => return Ok(()),
        Some(Objection::Everybody) => ("Every user may write to the home directory", "Run: chmod o-w"),
        Some(Objection::Group) => ("A group of users may write to the home directory", "Run: chmod g-w"),
        Some(Objection::Owner) => (
            "Root would run programs out of another user's home directory",
            "Run the same command as that user, or with sudo; to use this home all the same, set MANYKUBE_HOME to",
        ),
    };
    let (at, mode) = (root.display(), found.mode() & 0o7777);
    let message = format!("{message} {at} (uid {}, mode {mode:04o})", found.uid());
    Err(Fault::new(Reason::HomePermission, message).advice(format!("{advice} {at}")))
}

struct Caller {
    root: bool,
    /// Who became root to run this.
    by: Option<u32>,
    /// The home was not only found by HOME, which may be left over of another user.
    meant: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Objection {
    Everybody,
    Group,
    Owner,
}

fn objection(uid: u32, gid: u32, mode: u32, caller: &Caller) -> Option<Objection> {
    // A group of the owner's own has the owner's number.
    let group = mode & 0o020 != 0 && gid != 0 && gid != uid;
    let other = uid != 0 && caller.by != Some(uid) && !caller.meant;
    match () {
        () if mode & 0o002 != 0 => Some(Objection::Everybody),
        () if caller.root && group => Some(Objection::Group),
        () if caller.root && other => Some(Objection::Owner),
        () => None,
    }
}

fn make(dir: &Path) -> Result<(), Fault> {
    // Asked first: the common case costs one call.
    if dir.is_dir() {
        return Ok(());
    }
    // Whatever the caller's umask: what is only ours to write is made so.
    std::fs::DirBuilder::new().recursive(true).mode(0o755).create(dir).map_err(|e| {
        let reason = match e.kind() {
            std::io::ErrorKind::PermissionDenied => Reason::HomePermission,
            _ => Reason::HomeMkdir,
        };
        Fault::new(reason, format!("Unable to create {}: {e}", dir.display()))
            .advice("Set MANYKUBE_HOME to a directory that you may write to")
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn root_runs_nothing_out_of_the_home_of_others() {
        let root = |by, meant| Caller { root: true, by, meant };
        let user = Caller { root: false, by: None, meant: false };
        let of = |uid, gid, mode, caller: &Caller| objection(uid, gid, mode, caller);
        assert_eq!(of(0, 0, 0o755, &root(None, false)), None);
        assert_eq!(of(1000, 1000, 0o755, &root(None, false)), Some(Objection::Owner));
        assert_eq!(of(1000, 1000, 0o755, &root(Some(1001), false)), Some(Objection::Owner));
        assert_eq!(of(1000, 1000, 0o775, &root(Some(1000), false)), None);
        assert_eq!(of(1000, 1000, 0o755, &root(None, true)), None);
        assert_eq!(of(0, 100, 0o775, &root(None, false)), Some(Objection::Group));
        assert_eq!(of(1000, 100, 0o775, &user), None);
        assert_eq!(of(1000, 1000, 0o757, &user), Some(Objection::Everybody));
    }

    #[test]
    fn a_home_for_everybody_is_none() {
        let dir = tempfile::tempdir().expect("a directory");
        let home = Home::new(dir.path().join("home"), None);
        create(&home).expect("a new home");
        let mode = |mode| std::fs::set_permissions(home.root(), std::fs::Permissions::from_mode(mode));
        mode(0o777).expect("chmod");
        assert_eq!(create(&home).expect_err("not with this mode").reason, Reason::HomePermission);
        mode(0o775).expect("chmod");
        create(&home).expect("a group is somebody's");
    }

    #[test]
    fn home_by_name_and_environment() {
        let root = |tool: &str, vars: &[(&str, &str)]| {
            let env = |k: &str| vars.iter().find(|(n, _)| *n == k).map(|(_, v)| (*v).to_owned());
            resolve(tool, &env).map(|h| h.root().display().to_string())
        };
        let user = ("HOME", "/home/u");
        assert_eq!(root("manykube", &[user]).unwrap(), "/home/u/.manykube");
        assert_eq!(root("manykube", &[user, ("MANYKUBE_HOME", "/x")]).unwrap(), "/x");
        assert_eq!(root("manykube", &[user, ("MINIKUBE_HOME", "/x")]).unwrap(), "/home/u/.manykube");
        assert_eq!(root("minikube", &[user]).unwrap(), "/home/u/.minikube");
        assert_eq!(root("minikube", &[user, ("MINIKUBE_HOME", "/x")]).unwrap(), "/x/.minikube");
        assert_eq!(root("minikube", &[user, ("MINIKUBE_HOME", "/x/.minikube")]).unwrap(), "/x/.minikube");
        assert_eq!(root("manykube", &[]).unwrap_err().reason, Reason::HomeMkdir);
    }
}
