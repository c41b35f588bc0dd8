//! A machine's directory, `<home>/machines/<machine>/`, and the record of what runs from it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use model::{DriverKind, Home};

use crate::process::{self, Identity};

#[derive(Debug, Clone)]
pub struct Paths {
    dir: PathBuf,
}

impl Paths {
    pub fn new(home: &Home, machine: &str) -> Paths {
        Paths { dir: home.machine(machine) }
    }

    pub fn at(dir: impl Into<PathBuf>) -> Paths {
        Paths { dir: dir.into() }
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Changes of the node against the image.
    pub fn upper(&self) -> PathBuf {
        self.dir.join("root")
    }

    pub fn work(&self) -> PathBuf {
        self.dir.join("work")
    }

    /// Where the overlay is mounted, in the machine's mount namespace only.
    pub fn merged(&self) -> PathBuf {
        self.dir.join("merged")
    }

    /// The node's /var: no overlay, because the upper layers of containers cannot lie on one.
    pub fn var(&self) -> PathBuf {
        self.dir.join("var")
    }

    /// The disk of its own, of a machine that has one.
    pub fn disk(&self) -> PathBuf {
        self.dir.join(super::disk::DISK)
    }

    pub fn has_disk(&self) -> bool {
        self.disk().is_file()
    }

    /// Whether the disk is to be full on purpose: by this, whoever boots the machine knows. It has the name of the host's
    /// boot, because faults end with that.
    pub fn full_mark(&self) -> PathBuf {
        self.dir.join("disk.full")
    }

    pub fn is_to_be_full(&self) -> bool {
        std::fs::read_to_string(self.full_mark()).is_ok_and(|boot| boot == crate::boot_id())
    }

    pub fn launch_file(&self) -> PathBuf {
        self.dir.join("launch.json")
    }

    fn init_file(&self) -> PathBuf {
        self.dir.join("init.json")
    }

    /// minikube's per-machine record: its presence is what "host exists" means.
    pub fn config_file(&self) -> PathBuf {
        self.dir.join("config.json")
    }

    /// The root of the image the machine was made of. Its disk is only right on top of that one, so a
    /// newer image of the same version does not take its place.
    pub fn image_rootfs(&self) -> Result<PathBuf> {
        let record = self.record()?;
        let path = record["Driver"]["ImageRootfs"].as_str().context("the machine's record names no image")?;
        Ok(PathBuf::from(path))
    }

    /// The container images of that image, without which the machine cannot be.
    pub fn images(&self) -> Result<PathBuf> {
        let images = self.image_rootfs()?.join(image::CONTAINERD);
        if !images.is_dir() {
            bail!(
                "the node image that {} was made of is gone: there is no {}",
                self.dir.display(),
                images.display()
            );
        }
        Ok(images)
    }

    /// The profile it belongs to. By its record, not by its name: `a-m02` may be a profile of its own.
    pub fn profile(&self) -> Option<String> {
        Some(self.record().ok()?["Driver"]["Profile"].as_str()?.to_owned())
    }

    fn record(&self) -> Result<serde_json::Value> {
        serde_json::from_slice(&fs_err::read(self.config_file())?)
            .with_context(|| format!("read {}", self.config_file().display()))
    }

    pub fn exists(&self) -> bool {
        self.config_file().is_file() && self.driver().is_some()
    }

    /// Whose machine it is; none when there is none, or when it is minikube's, whose home this is as well.
    /// minikube has a driver of the name docker too, but its records name no profile.
    pub fn driver(&self) -> Option<DriverKind> {
        if !self.config_file().is_file() {
            return self.running().map(|_| DriverKind::Native);
        }
        // One that is damaged must have been ours: it can be removed.
        let Ok(record) = self.record() else { return Some(DriverKind::Native) };
        let kind = record["DriverName"].as_str().map_or(Ok(DriverKind::Native), str::parse).ok()?;
        (kind == DriverKind::Native || record["Driver"]["Profile"].is_string()).then_some(kind)
    }

    /// Is it a machine of minikube's?
    pub fn is_anothers(&self) -> bool {
        self.config_file().is_file() && self.driver().is_none()
    }

    /// Where the record of such a machine goes when ours takes its place.
    pub fn aside(&self) -> PathBuf {
        let mut name = self.dir.file_name().unwrap_or_default().to_owned();
        name.push(".minikube");
        self.dir.with_file_name(name)
    }

    /// The machine's init, if it runs.
    pub fn running(&self) -> Option<Identity> {
        let text = std::fs::read(self.init_file()).ok()?;
        let identity: Identity = serde_json::from_slice(&text).ok()?;
        process::is_alive(&identity).then_some(identity)
    }

    pub fn record_init(&self, identity: &Identity) -> Result<()> {
        let temporary = self.dir.join("init.json.new");
        fs_err::write(&temporary, serde_json::to_vec(identity)?)?;
        fs_err::rename(&temporary, self.init_file()).context("record the machine's init")
    }

    pub fn forget_init(&self) -> Result<()> {
        match fs_err::remove_file(self.init_file()) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(e.into()),
            _ => Ok(()),
        }
    }
}
