//! Machines' directories: made as a whole, removed as a whole.

use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

use anyhow::{Context, Result, bail};
use model::node_spec::{AGENT_PATH, NodeFile};
use model::{DriverKind, Home};

use super::files::put_quickly;
use super::{Paths, disk};
use crate::driver::MachineSpec;

/// Suffixes of directories that are not machines yet, or not any more.
const NEW: &str = ".new";
const GONE: &str = ".gone";

/// A machine that is there stays as it is.
pub async fn create(home: &Home, spec: &MachineSpec, driver: DriverKind) -> Result<()> {
    let paths = Paths::new(home, &spec.name);
    if paths.exists() {
        return Ok(());
    }
    // A home is listed as long as it has this directory.
    fs_err::create_dir_all(home.machines())?;
    super::note(home)?;
    let spec = spec.clone();
    tokio::task::spawn_blocking(move || make(&paths, &spec, driver)).await?
}

/// Writes the files of a machine that does not run.
pub async fn configure(home: &Home, spec: &MachineSpec) -> Result<()> {
    let paths = Paths::new(home, &spec.name);
    if paths.running().is_some() {
        bail!("machine {} runs: its files cannot be replaced", spec.name);
    }
    let files = spec.files.clone();
    let place_all = move || {
        files.iter().try_for_each(|file| put_quickly(&paths, file))?;
        write_out(paths.dir())
    };
    tokio::task::spawn_blocking(place_all).await?
}

/// Everything is made beside its final place and renamed, so that a machine exists as a whole.
fn make(paths: &Paths, spec: &MachineSpec, driver: DriverKind) -> Result<()> {
    let parent = paths.dir().parent().context("machines directory")?;
    fs_err::create_dir_all(parent)?;
    let building = Paths::at(parent.join(format!(".{}{NEW}", spec.name)));
    remove_dir(building.dir())?;
    std::fs::DirBuilder::new().mode(0o700).create(building.dir()).context("make the machine's directory")?;
    for dir in [building.upper(), building.work(), building.merged(), building.var()] {
        fs_err::create_dir(dir)?;
    }
    spec.image.clone_var(&building.var()).context("fill the machine's /var")?;
    if let Some(mib) = spec.disk_mib {
        disk::make(&building, mib, &spec.image.rootfs())?;
    }
    for file in &spec.files {
        put_quickly(&building, file)?;
    }
    put_quickly(&building, &NodeFile::new(AGENT_PATH, 0o755, Vec::new()))?;
    put_quickly(&building, &NodeFile::new("/etc/hostname", 0o644, format!("{}\n", spec.name)))?;
    let record = serde_json::json!({
        "ConfigVersion": 3,
        "DriverName": driver.to_string(),
        "Name": spec.name,
        "Driver": {
            "IPAddress": spec.ip,
            "MachineName": spec.name,
            "Profile": spec.cluster.name,
            "CPU": spec.cpus,
            "Memory": spec.memory_mib,
            "ImageRootfs": spec.image.rootfs(),
        },
    });
    fs_err::write(building.config_file(), serde_json::to_vec_pretty(&record)?)?;
    fs_err::set_permissions(building.config_file(), PermissionsExt::from_mode(0o600))?;
    if paths.is_anothers() {
        fs_err::rename(paths.dir(), paths.aside()).context("put minikube's machine aside")?;
    }
    // A host that loses power would keep the names of fresh files without what was in them.
    write_out(parent)?;
    base::atomic::rename(building.dir(), paths.dir()).context("put the machine in place")
}

/// All that was written to the disk of a directory is on it, in one go: a machine has hundreds of files.
fn write_out(dir: &Path) -> Result<()> {
    let dir = fs_err::File::open(dir)?;
    rustix::fs::syncfs(&dir).with_context(|| format!("write out the disk of {}", dir.path().display()))
}

/// Out of sight in one step: a removal that is cut short leaves no half machine.
pub fn discard(paths: &Paths) -> Result<()> {
    let machine = paths.dir().file_name().unwrap_or_default().to_string_lossy();
    let gone = paths.dir().with_file_name(format!(".{machine}{GONE}"));
    remove_dir(&gone)?;
    match base::atomic::rename(paths.dir(), &gone) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
        renamed => renamed.map_err(Into::into).and_then(|()| remove_dir(&gone)),
    }
}

/// What a creation or a removal left that was cut short.
pub fn sweep(machines: &Path, profile: &str) -> Result<()> {
    for entry in std::fs::read_dir(machines).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(name) = name.strip_prefix('.') else { continue };
        // One that is being made may belong to a profile that another command is starting now.
        let half_made = name.strip_suffix(NEW).is_some_and(|m| model::names::belongs(profile, m));
        if half_made || name.ends_with(GONE) {
            remove_dir(&entry.path())?;
        }
    }
    Ok(())
}

pub fn fresh_dir(dir: &Path) -> Result<()> {
    remove_dir(dir)?;
    fs_err::create_dir_all(dir).map_err(Into::into)
}

fn remove_dir(dir: &Path) -> Result<()> {
    match fs_err::remove_dir_all(dir) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(e.into()),
        _ => Ok(()),
    }
}
