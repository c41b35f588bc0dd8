use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::*;

#[test]
fn replaces_and_leaves_nothing_beside() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sub/file");
    write(&path, b"one", 0o600).unwrap();
    write(&path, b"two", 0o600).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"two");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::read_dir(dir.path().join("sub")).unwrap().count(), 1);
    remove(&path).unwrap();
    remove(&path).unwrap();
    assert_eq!(std::fs::read_dir(dir.path().join("sub")).unwrap().count(), 0);
}

#[test]
fn what_cannot_be_put_in_place_leaves_nothing_and_says_where() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a-directory");
    std::fs::create_dir_all(path.join("full")).unwrap();
    let error = write(&path, b"x", 0o600).unwrap_err();
    assert!(error.to_string().contains("a-directory"), "{error}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

/// Another user of the directory cannot have us write, or give away, a file of theirs choosing.
#[test]
fn links_are_replaced_and_never_followed() {
    let dir = tempfile::tempdir().unwrap();
    let (victim, path) = (dir.path().join("shadow"), dir.path().join("config.json"));
    std::fs::write(&victim, "secret").unwrap();
    symlink(&victim, &path).unwrap();
    // The name that earlier versions wrote to.
    symlink(&victim, dir.path().join(format!(".config.json.{}.new", std::process::id()))).unwrap();
    write(&path, b"mine", 0o600).unwrap();
    assert_eq!(std::fs::read(&victim).unwrap(), b"secret");
    assert!(!std::fs::symlink_metadata(&path).unwrap().is_symlink());
    assert_eq!(std::fs::read(&path).unwrap(), b"mine");
}

#[test]
fn halves_of_the_dead_are_removed_and_of_the_living_not() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    // No process has this number: it is above what the kernel gives.
    let dead = [at(".config.json.4294967295.new"), at(".config.json.4294967295.0123456789abcdef.new")];
    let rest = [at(".config.json.1.new"), at(".config.json.1.0123456789abcdef.new"), at(".config.json.new")];
    for half in dead.iter().chain(&rest) {
        std::fs::write(half, "").unwrap();
    }
    sweep(&at("events.json"));
    assert!(dead.iter().all(|half| half.exists()));
    write(&at("config.json"), b"x", 0o600).unwrap();
    assert!(!dead.iter().any(|half| half.exists()) && rest.iter().all(|half| half.exists()));
}

#[test]
fn an_owner_keeps_the_file() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config");
    std::os::unix::fs::chown(dir.path(), Some(1234), Some(1234)).unwrap();
    write(&path, b"x", 0o600).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().uid(), 1234);
    std::os::unix::fs::chown(&path, Some(0), Some(0)).unwrap();
    write(&path, b"y", 0o600).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().uid(), 0);
    let other = dir.path().join("other");
    replace(&other, b"z", 0o600).unwrap();
    assert_eq!(std::fs::metadata(&other).unwrap().uid(), 0);
}
