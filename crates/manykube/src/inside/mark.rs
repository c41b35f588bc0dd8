//! In the directory of a profile that is a copy of one elsewhere: which engine has it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Result;
use drivers::docker::Address;
use model::Home;
use serde::{Deserialize, Serialize};

use super::door;
use crate::state::atomic;

const MARK: &str = "elsewhere";

/// An engine, as a mark names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// By its own word: it may be reached in more than one way.
    pub engine: String,
    pub address: Address,
}

/// Whose a name for a profile is.
#[derive(Debug, PartialEq, Eq)]
enum Whose {
    Nobodys,
    ThisHosts,
    /// Older marks do not say which.
    Engines(Option<Mark>),
}

fn file(home: &Home, profile: &str) -> PathBuf {
    home.profile(profile).join(MARK)
}

fn whose(home: &Home, profile: &str) -> Whose {
    match std::fs::read(file(home, profile)) {
        Ok(text) => Whose::Engines(serde_json::from_slice(&text).ok()),
        Err(_) if is_bare(&home.profile(profile)) => Whose::Nobodys,
        Err(_) => Whose::ThisHosts,
    }
}

/// Half a mark does not count.
fn is_bare(dir: &Path) -> bool {
    match std::fs::read_dir(dir) {
        Ok(entries) => entries.flatten().all(|entry| entry.file_name().as_encoded_bytes().starts_with(b".")),
        Err(e) => e.kind() == std::io::ErrorKind::NotFound,
    }
}

/// A cluster whose machines belong to this home, and not to one in a volume.
pub fn is_here(home: &Home, profile: &str) -> bool {
    whose(home, profile) == Whose::ThisHosts
}

pub fn is_elsewhere(home: &Home, profile: &str) -> bool {
    matches!(whose(home, profile), Whose::Engines(_))
}

/// How the engine is reached that has it.
pub fn address(home: &Home, profile: &str) -> Option<Address> {
    match whose(home, profile) {
        Whose::Engines(Some(mark)) => Some(mark.address),
        _ => None,
    }
}

impl Mark {
    /// Does the profile bear it? An engine that was made anew has another id at the same address.
    pub fn is_on(&self, home: &Home, profile: &str) -> bool {
        match whose(home, profile) {
            Whose::Engines(Some(mark)) => mark.engine == self.engine || mark.address == self.address,
            Whose::Engines(None) => door::address(home, profile).is_none_or(|at| at == self.address),
            Whose::Nobodys | Whose::ThisHosts => false,
        }
    }

    /// Does it bear that of an engine that had this address before?
    pub fn is_anothers_at_its_place(&self, home: &Home, profile: &str) -> bool {
        matches!(whose(home, profile), Whose::Engines(Some(mark)) if mark.engine != self.engine)
    }

    /// All that bear it.
    pub fn all(&self, home: &Home) -> BTreeSet<String> {
        names(home).into_iter().filter(|name| self.is_on(home, name)).collect()
    }

    /// Marks the profile, unless it is somebody else's: then this says no.
    pub fn put(&self, home: &Home, profile: &str) -> Result<bool> {
        let old = whose(home, profile);
        if old != Whose::Nobodys && !self.is_on(home, profile) {
            return Ok(false);
        }
        // What led to it first leads to it still.
        let address = match &old {
            Whose::Engines(Some(mark)) => mark.address.clone(),
            _ => door::address(home, profile).unwrap_or_else(|| self.address.clone()),
        };
        let new = Mark { engine: self.engine.clone(), address };
        if old != Whose::Engines(Some(new.clone())) {
            atomic::write(&file(home, profile), &serde_json::to_vec(&new)?, 0o600)?;
        }
        Ok(true)
    }
}

/// All names of profiles in this home, whosever they are.
pub fn names(home: &Home) -> Vec<String> {
    let entries = std::fs::read_dir(home.profiles()).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(engine: &str, host: &str) -> Mark {
        Mark { engine: engine.into(), address: Address { host: host.into(), certs: None } }
    }

    #[test]
    fn each_engine_has_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path(), None);
        let (one, two) = (at("1", "ssh://one"), at("2", "ssh://two"));
        assert!(one.put(&home, "demo").unwrap());
        assert!(!two.put(&home, "demo").unwrap());
        assert!(one.is_on(&home, "demo") && !two.is_on(&home, "demo"));
        assert_eq!(one.all(&home), ["demo".to_owned()].into());
        assert_eq!(two.all(&home), BTreeSet::new());

        let by_tls = at("1", "tcp://one:2376");
        assert!(by_tls.put(&home, "demo").unwrap());
        assert_eq!(address(&home, "demo").unwrap().host, "ssh://one");
        let anew = at("3", "ssh://one");
        assert!(anew.put(&home, "demo").unwrap() && !by_tls.is_on(&home, "demo"));
    }

    #[test]
    fn what_is_here_is_never_marked() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path(), None);
        let far = at("1", "ssh://one");
        assert!(!is_here(&home, "demo"));
        std::fs::create_dir_all(home.profile("demo").join("pki")).unwrap();
        assert!(is_here(&home, "demo") && !is_elsewhere(&home, "demo"));
        assert!(!far.put(&home, "demo").unwrap());
        assert!(!home.profile("demo").join(MARK).exists());
    }

    #[test]
    fn half_a_mark_and_an_old_one() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path(), None);
        let far = at("1", "ssh://one");
        for profile in ["half", "old"] {
            std::fs::create_dir_all(home.profile(profile)).unwrap();
        }
        std::fs::write(home.profile("half").join(".elsewhere.7.new"), "{").unwrap();
        std::fs::write(file(&home, "old"), "").unwrap();
        assert!(!is_here(&home, "half") && far.put(&home, "half").unwrap());
        assert!(far.is_on(&home, "old") && address(&home, "old").is_none());
        assert!(far.put(&home, "old").unwrap());
        assert_eq!(address(&home, "old"), Some(far.address));
    }
}
