//! Where things lie below the home directory. Only paths: nothing here touches the disk.

use std::path::{Path, PathBuf};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    root: PathBuf,
    cache: PathBuf,
}

impl Home {
    /// `cache` may lie elsewhere, so that several homes share one set of node images.
    pub fn new(root: impl Into<PathBuf>, cache: Option<PathBuf>) -> Home {
        let root = root.into();
        let cache = cache.unwrap_or_else(|| root.join("cache"));
        Home { root, cache }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn cache(&self) -> &Path {
        &self.cache
    }

    pub fn logs(&self) -> PathBuf {
        self.root.join("logs")
    }

    pub fn config_file(&self) -> PathBuf {
        self.root.join("config/config.json")
    }

    pub fn profiles(&self) -> PathBuf {
        self.root.join("profiles")
    }

    pub fn profile(&self, profile: &str) -> PathBuf {
        self.profiles().join(profile)
    }

    /// The objects of a pod network that is not ours, as they were when the cluster was made.
    pub fn profile_cni(&self, profile: &str) -> PathBuf {
        self.profile(profile).join("cni.yaml")
    }

    /// The user's own objects, as the cluster file last named them.
    pub fn profile_manifests(&self, profile: &str) -> PathBuf {
        self.profile(profile).join("manifests.yaml")
    }

    /// The desired state of a profile, in minikube's schema.
    pub fn profile_config(&self, profile: &str) -> PathBuf {
        self.profile(profile).join("config.json")
    }

    pub fn profile_events(&self, profile: &str) -> PathBuf {
        self.profile(profile).join("events.json")
    }

    /// Held while a command changes the profile. Outside the profile's directory, so that `delete`
    /// can remove that while it holds the lock.
    pub fn profile_lock(&self, profile: &str) -> PathBuf {
        self.root.join("locks").join(format!("{profile}.lock"))
    }

    /// Of Docker's client; and authorities that the user wants every node to trust.
    pub fn certs(&self) -> PathBuf {
        self.root.join("certs")
    }

    pub fn machines(&self) -> PathBuf {
        self.root.join("machines")
    }

    pub fn machine(&self, machine: &str) -> PathBuf {
        self.machines().join(machine)
    }
}
