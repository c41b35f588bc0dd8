//! Kernel settings that are changed for a while: what they were is written down before the first
//! change and put back at the end.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::Result;
use fs_err::os::unix::fs::OpenOptionsExt as _;
use serde::{Deserialize, Serialize};

use crate::process::boot_id;

/// What was found in one setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Kept {
    was: String,
    /// What we set it to; `None` where somebody else (a kubelet) does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    raised: Option<u64>,
}

/// What is on the disk. After a reboot the settings are the kernel's own again, and others have chosen since.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    boot_id: String,
    kept: BTreeMap<String, Kept>,
}

/// A setting that was lower than needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raised {
    pub setting: String,
    pub from: u64,
    pub to: u64,
    /// Why it could not be.
    pub refused: Option<String>,
}

pub struct Settings {
    /// `/proc/sys`
    root: PathBuf,
    record: PathBuf,
    /// All that we ever change: a name in the record becomes part of a path.
    ours: Vec<&'static str>,
}

impl Settings {
    pub fn new(root: impl Into<PathBuf>, record: impl Into<PathBuf>, ours: Vec<&'static str>) -> Settings {
        Settings { root: root.into(), record: record.into(), ours }
    }

    fn kept(&self) -> BTreeMap<String, Kept> {
        let read = || serde_json::from_slice::<Record>(&std::fs::read(&self.record).ok()?).ok();
        let kept = read().filter(|record| record.boot_id == boot_id()).map(|record| record.kept);
        let mut kept = kept.unwrap_or_default();
        kept.retain(|setting, _| self.ours.contains(&setting.as_str()));
        kept
    }

    /// Was it lower before us?
    pub fn has_raised(&self, setting: &str) -> bool {
        self.kept().get(setting).is_some_and(|kept| kept.raised.is_some())
    }

    fn keep(&self, kept: &BTreeMap<String, Kept>) -> Result<()> {
        if kept.is_empty() {
            return match fs_err::remove_file(&self.record) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(e.into()),
                _ => Ok(()),
            };
        }
        if let Some(dir) = self.record.parent() {
            fs_err::create_dir_all(dir)?;
        }
        let new = self.record.with_extension("new");
        let record = Record { boot_id: boot_id(), kept: kept.clone() };
        fs_err::write(&new, serde_json::to_vec_pretty(&record)?)?;
        fs_err::rename(&new, &self.record).map_err(Into::into)
    }

    /// `None` when this kernel, or this network namespace, has no such setting.
    fn read(&self, setting: &str) -> Option<String> {
        Some(std::fs::read_to_string(self.root.join(setting)).ok()?.trim().to_owned())
    }

    /// Raises what is lower than `needs`, and lowers nothing. `others` are only remembered.
    pub fn raise(&self, needs: &[(&str, u64)], others: &[&str]) -> Result<Vec<Raised>> {
        let mut kept = self.kept();
        let before = kept.clone();
        let mut raise = Vec::new();
        for (setting, need) in needs {
            let Some(was) = self.read(setting) else { continue };
            let Some(now) = was.parse::<u64>().ok().filter(|now| now < need) else { continue };
            kept.entry((*setting).to_owned()).or_insert(Kept { was, raised: None }).raised = Some(*need);
            raise.push(Raised { setting: (*setting).to_owned(), from: now, to: *need, refused: None });
        }
        for setting in others {
            if let (false, Some(was)) = (kept.contains_key(*setting), self.read(setting)) {
                kept.insert((*setting).to_owned(), Kept { was, raised: None });
            }
        }
        // Before anything is changed, so that no crash loses the old values.
        if kept != before {
            self.keep(&kept)?;
        }
        for raised in &mut raise {
            if let Err(e) = std::fs::write(self.root.join(&raised.setting), raised.to.to_string()) {
                raised.refused = Some(e.to_string());
            }
        }
        Ok(raise)
    }

    /// Puts back what was found, except where somebody has set something else since.
    pub fn restore(&self, keep: impl Fn(&str) -> bool) -> Result<()> {
        let mut left = BTreeMap::new();
        for (setting, kept) in self.kept() {
            let Some(now) = self.read(&setting) else {
                // Another network namespace's: whoever ends there can put it back.
                left.insert(setting, kept);
                continue;
            };
            let foreign = kept.raised.is_some_and(|raised| now != raised.to_string());
            if !foreign && !keep(&setting) && now != kept.was {
                // What the kernel refuses now is not ours to mend.
                let _ = std::fs::write(self.root.join(&setting), &kept.was);
            }
        }
        self.keep(&left)
    }
}

/// As `sysctl` names it.
pub fn name(setting: &str) -> String {
    setting.replace('/', ".")
}

/// Held while what is the host's is looked at and changed: other homes do so as well. Root's alone: a user who can open it
/// can keep all others waiting.
pub fn lock(dir: &Path) -> Result<std::fs::File> {
    let path = dir.join("lock");
    loop {
        fs_err::create_dir_all(dir)?;
        let mut options = fs_err::OpenOptions::new();
        let file = options.create(true).append(true).mode(0o600).open(&path)?.into_parts().0;
        file.lock()?;
        // Whoever was the last one before us has taken the directory away.
        let there = std::fs::metadata(&path).map(|m| m.ino()).ok();
        if there == Some(file.metadata()?.ino()) {
            return Ok(file);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Kernel(tempfile::TempDir);

    impl Kernel {
        fn new() -> Kernel {
            Kernel(tempfile::tempdir().unwrap())
        }

        fn set(&self, setting: &str, value: &str) {
            std::fs::write(self.0.path().join(setting), format!("{value}\n")).unwrap();
        }

        fn get(&self, setting: &str) -> String {
            std::fs::read_to_string(self.0.path().join(setting)).unwrap().trim().to_owned()
        }

        fn settings(&self) -> Settings {
            Settings::new(self.0.path(), self.record(), vec!["low", "high", "panic", "fixed"])
        }

        fn record(&self) -> PathBuf {
            self.0.path().join("run/record.json")
        }

        fn write_record(&self, boot_id: String, setting: &str) {
            let kept = Kept { was: "666".into(), raised: Some(1024) };
            let record = Record { boot_id, kept: BTreeMap::from([(setting.to_owned(), kept)]) };
            std::fs::create_dir_all(self.0.path().join("run")).unwrap();
            std::fs::write(self.record(), serde_json::to_vec(&record).unwrap()).unwrap();
        }
    }

    #[test]
    fn only_what_is_too_low_is_raised_and_all_is_put_back() {
        let kernel = Kernel::new();
        kernel.set("low", "128");
        kernel.set("high", "4096");
        kernel.set("panic", "0");
        let raised =
            kernel.settings().raise(&[("low", 1024), ("high", 1024), ("absent", 1)], &["panic"]).unwrap();
        assert_eq!(raised, [Raised { setting: "low".into(), from: 128, to: 1024, refused: None }]);
        // More nodes: the first value stays the one to go back to.
        kernel.settings().raise(&[("low", 2048)], &["panic"]).unwrap();
        kernel.set("panic", "10");
        kernel.settings().restore(|_| false).unwrap();
        assert_eq!(
            (kernel.get("low"), kernel.get("high"), kernel.get("panic")),
            ("128".into(), "4096".into(), "0".into())
        );
        assert!(!kernel.record().exists());
    }

    #[test]
    fn what_was_before_a_reboot_is_no_concern_of_ours() {
        let kernel = Kernel::new();
        kernel.set("low", "1024");
        kernel.write_record("another boot".into(), "low");
        assert!(!kernel.settings().has_raised("low"));
        kernel.settings().restore(|_| false).unwrap();
        assert_eq!(kernel.get("low"), "1024", "it was set since");
        kernel.write_record(boot_id(), "low");
        assert!(kernel.settings().has_raised("low"));
        kernel.settings().restore(|_| false).unwrap();
        assert_eq!(kernel.get("low"), "666");
    }

    #[test]
    fn no_other_file_is_written_than_those_of_our_settings() {
        let kernel = Kernel::new();
        let outside = kernel.0.path().join("elsewhere");
        for named in [outside.to_str().unwrap(), "elsewhere", "../elsewhere"] {
            std::fs::write(&outside, "1024").unwrap();
            kernel.write_record(boot_id(), named);
            kernel.settings().restore(|_| false).unwrap();
            assert_eq!(std::fs::read_to_string(&outside).unwrap(), "1024", "{named}");
        }
    }

    #[test]
    fn only_we_can_open_the_lock() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let file = lock(dir.path()).unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn what_somebody_else_has_set_since_stays() {
        let kernel = Kernel::new();
        kernel.set("low", "128");
        kernel.settings().raise(&[("low", 1024)], &[]).unwrap();
        kernel.set("low", "9999");
        kernel.settings().restore(|_| false).unwrap();
        assert_eq!(kernel.get("low"), "9999");
    }

    #[test]
    fn what_cannot_be_seen_from_here_is_not_forgotten() {
        let kernel = Kernel::new();
        kernel.set("low", "128");
        kernel.settings().raise(&[("low", 1024)], &[]).unwrap();
        std::fs::remove_file(kernel.0.path().join("low")).unwrap();
        kernel.settings().restore(|_| false).unwrap();
        kernel.set("low", "1024");
        kernel.settings().restore(|_| false).unwrap();
        assert_eq!(kernel.get("low"), "128");
    }

    #[test]
    fn a_refusal_is_told() {
        let kernel = Kernel::new();
        // Nobody may write this one, root neither.
        std::os::unix::fs::symlink("/proc/sys/kernel/ngroups_max", kernel.0.path().join("fixed")).unwrap();
        let raised = kernel.settings().raise(&[("fixed", u64::MAX)], &[]).unwrap();
        assert!(raised[0].refused.is_some(), "{raised:?}");
        assert_eq!(name("fs/inotify/max_user_instances"), "fs.inotify.max_user_instances");
    }
}
