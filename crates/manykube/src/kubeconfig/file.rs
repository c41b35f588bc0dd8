//! The kubeconfig on disk.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::lock::FileLock;
use super::yaml;
use crate::state::atomic;

/// The first non-empty entry of `KUBECONFIG`, else `~/.kube/config`.
pub fn path(env: &dyn Fn(&str) -> Option<String>) -> PathBuf {
    let listed =
        env("KUBECONFIG").and_then(|list| list.split(':').find(|entry| !entry.is_empty()).map(PathBuf::from));
    listed.unwrap_or_else(|| {
        let home = env("HOME").filter(|h| !h.is_empty()).unwrap_or_else(|| "/root".into());
        Path::new(&home).join(".kube/config")
    })
}

pub fn read(path: &Path) -> Result<Value> {
    match std::fs::read_to_string(path) {
        Ok(text) => yaml::parse(&text).with_context(|| path.display().to_string()),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => yaml::parse(""),
        Err(e) => Err(e).with_context(|| path.display().to_string()),
    }
}

/// Changes the file under its lock. When `change` says that nothing changed, the file stays untouched.
pub fn edit(path: &Path, change: impl FnOnce(&mut Value) -> bool) -> Result<bool> {
    // A link (a kubeconfig kept in a repository of dot files) is followed, not replaced.
    let path = &std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if let Some(dir) = path.parent().filter(|d| !d.as_os_str().is_empty()) {
        std::fs::create_dir_all(dir).with_context(|| dir.display().to_string())?;
    }
    let _lock = FileLock::acquire(path)?;
    atomic::sweep(path);
    let mut doc = read(path)?;
    if !change(&mut doc) {
        return Ok(false);
    }
    let text = yaml::render(&doc)?;
    atomic::write(path, text.as_bytes(), 0o600)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_first_entry_counts() {
        let with = |value: Option<&str>| {
            let value = value.map(str::to_owned);
            path(&move |k| if k == "KUBECONFIG" { value.clone() } else { Some("/home/u".into()) })
        };
        assert_eq!(with(None), Path::new("/home/u/.kube/config"));
        assert_eq!(with(Some("")), Path::new("/home/u/.kube/config"));
        assert_eq!(with(Some(":/a:/b")), Path::new("/a"));
    }

    #[test]
    fn nobodys_edit_is_lost() {
        let dir = tempfile::tempdir().unwrap();
        let path = &dir.path().join("config");
        std::thread::scope(|threads| {
            for writer in 0..4 {
                threads.spawn(move || {
                    for number in 0..5 {
                        let add = |doc: &mut Value| {
                            doc[format!("{writer}-{number}")] = number.into();
                            true
                        };
                        edit(path, add).unwrap();
                    }
                });
            }
        });
        let doc = read(path).unwrap();
        assert_eq!(doc.as_object().unwrap().keys().filter(|k| k.contains('-')).count(), 20, "{doc}");
    }

    #[test]
    fn edits_are_private_and_leave_no_lock() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".kube/config");
        assert!(!edit(&path, |_| false).unwrap());
        assert!(!path.exists());
        assert!(
            edit(&path, |doc| {
                doc["kind"] = "Config".into();
                true
            })
            .unwrap()
        );
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        std::fs::write(&path, "a: [").unwrap();
        assert!(edit(&path, |_| true).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "a: [");
    }
}
