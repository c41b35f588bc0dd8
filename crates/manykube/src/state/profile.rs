//! Profiles on disk: the desired state of each cluster.

use std::path::{Path, PathBuf};

use anyhow::Result as Anyhow;
use model::config_file::{self, ConfigFile};
use model::{Cluster, Fault, Home, Reason};
use serde_json::{Map, Value};

use super::atomic;
use super::lock::ProfileLock;
use crate::ctx::Ctx;

/// The profile's configuration; `None` when there is no such profile. A file that cannot be read stays as it is.
pub fn load(home: &Home, profile: &str) -> Result<Option<ConfigFile>, Fault> {
    let path = home.profile_config(profile);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(unreadable(&path, &e.to_string())),
    };
    config_file::parse(&text).map(Some).map_err(|e| unreadable(&path, &e.to_string()))
}

fn backup(path: &Path) -> PathBuf {
    path.with_extension("json.bak")
}

/// Puts the last good configuration in the place of one that is no JSON any more: half of a file, or an
/// empty one. What is wrong in another way is for the user to decide.
pub async fn mend(ctx: &Ctx, profile: &str) -> Anyhow<()> {
    let path = ctx.home.profile_config(profile);
    let broken = || std::fs::read_to_string(&path).is_ok_and(|t| serde_json::from_str::<Value>(&t).is_err());
    let good = || std::fs::read_to_string(backup(&path)).ok().filter(|t| config_file::parse(t).is_ok());
    if !broken() || good().is_none() {
        return Ok(());
    }
    let _lock = ProfileLock::acquire(ctx, profile).await?;
    if let (true, Some(text)) = (broken(), good()) {
        let kept = path.with_extension("json.broken");
        fs_err::rename(&path, &kept)?;
        atomic::write(&path, text.as_bytes(), 0o600)?;
        let (path, kept) = (path.display(), kept.display());
        ctx.warn(format!(
            "{path} was damaged: the last good one is taken, the damaged one is kept as {kept}"
        ));
    }
    Ok(())
}

fn unreadable(path: &Path, why: &str) -> Fault {
    let backup = backup(path);
    let advice = if backup.exists() {
        format!(
            "Run start, which puts back the last good one, or do so yourself: cp {} {}",
            backup.display(),
            path.display()
        )
    } else {
        "Mend the file, or remove the cluster with delete".to_owned()
    };
    Fault::new(Reason::ConfigLoad, format!("Unable to load {}: {why}", path.display())).advice(advice)
}

/// As [`load`], for commands that need the profile.
pub fn require(home: &Home, profile: &str) -> Result<ConfigFile, Fault> {
    load(home, profile)?.ok_or_else(|| not_found(profile))
}

/// Shown by `main` as minikube shows it: two lines on standard output.
pub fn not_found(profile: &str) -> Fault {
    Fault::new(Reason::ProfileNotFound, format!("Profile \"{profile}\" not found."))
}

/// Saves the desired state, and beside it a copy as `config.json.bak`: who breaks the one has the other.
pub fn save(home: &Home, cluster: &Cluster, previous: Option<&Map<String, Value>>) -> Result<(), Fault> {
    let path = home.profile_config(&cluster.name);
    let text = config_file::render_text(cluster, previous);
    // What minikube wrote is kept for good, so that one can go back.
    if let Ok(old) = std::fs::read_to_string(&path)
        && config_file::parse(&old).is_ok_and(|file| file.migrated.is_some())
    {
        save_text(&path.with_extension("json.minikube"), &old)?;
    }
    // The copy first: when the file itself is there, nothing is left to do.
    for file in [&backup(&path), &path] {
        if std::fs::read_to_string(file).is_ok_and(|old| old == text) {
            continue;
        }
        save_text(file, &text)?;
    }
    Ok(())
}

/// Beside the desired state, which only names the file: that may be gone when a start is resumed.
pub fn save_cni(home: &Home, profile: &str, text: &str) -> Result<(), Fault> {
    save_text(&home.profile_cni(profile), text)
}

/// The user's own objects; an empty text where there were some before takes them out of our hands.
pub fn save_manifests(home: &Home, profile: &str, text: &str) -> Result<(), Fault> {
    let path = home.profile_manifests(profile);
    if text.is_empty() && !path.exists() { Ok(()) } else { save_text(&path, text) }
}

fn save_text(path: &Path, text: &str) -> Result<(), Fault> {
    atomic::write(path, text.as_bytes(), 0o600)
        .map_err(|e| Fault::new(Reason::SaveProfile, format!("Unable to save {e}")))
}

/// A profile's name, and what is in its file.
pub type Listed = (String, Result<ConfigFile, Fault>);

/// All profiles by name. One that cannot be read is listed with the reason.
pub fn list(home: &Home) -> Result<Vec<Listed>, Fault> {
    let dir = home.profiles();
    let entries = match std::fs::read_dir(&dir) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(unreadable(&dir, &e.to_string())),
    };
    let mut names: Vec<String> = entries
        .flatten()
        .filter(|e| e.path().is_dir())
        .filter_map(|e| e.file_name().into_string().ok())
        .collect();
    names.sort();
    Ok(names
        .into_iter()
        .map(|name| {
            let file = require(home, &name);
            (name, file)
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::start::desired::tests::sample;

    #[test]
    fn a_saved_profile_is_loaded_and_the_last_good_file_kept() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path(), None);
        let mut cluster = sample("demo");
        assert_eq!(load(&home, "demo").unwrap(), None);
        save(&home, &cluster, None).unwrap();
        cluster.memory_mib = 4096;
        save(&home, &cluster, None).unwrap();
        save(&home, &cluster, None).unwrap();
        assert_eq!(require(&home, "demo").unwrap().cluster, cluster);
        let path = home.profile_config("demo");
        assert_eq!(std::fs::read(backup(&path)).unwrap(), std::fs::read(&path).unwrap());

        // A broken file is neither loaded, nor changed, nor taken for the last good one.
        std::fs::write(home.profile_config("demo"), "{\n  \"Name\": oops").unwrap();
        let fault = load(&home, "demo").unwrap_err();
        assert_eq!(fault.reason.exit_code(), 38);
        assert!(fault.message.contains("config.json: line 2, column 1"), "{}", fault.message);
        assert!(fault.advice.unwrap().contains("config.json.bak"));
        assert_eq!(std::fs::read(home.profile_config("demo")).unwrap(), b"{\n  \"Name\": oops");
        let all = list(&home).unwrap();
        assert_eq!(all.len(), 1);
        assert!(all[0].1.is_err());
    }
}
