//! What lies in a machine's directory, running or not.

use std::future::Future;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use model::node_spec::NodeFile;
use model::{DriverKind, Home};

use super::Paths;
use crate::process::Handle;

/// All machines of a home with the driver that runs them.
pub fn of_home(home: &Home) -> Vec<(String, DriverKind)> {
    let entries = std::fs::read_dir(home.machines()).into_iter().flatten().flatten();
    let names = entries.filter_map(|e| e.file_name().into_string().ok()).filter(|n| !n.starts_with('.'));
    let mut all: Vec<_> = names.filter_map(|n| Some((n.clone(), driver_of(home, &n)?))).collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

/// `None` when there is no such machine.
pub fn driver_of(home: &Home, machine: &str) -> Option<DriverKind> {
    Paths::new(home, machine).driver()
}

/// Directory shared with a machine: the agent's socket is in it.
pub fn shared_dir(home: &Home, machine: &str) -> PathBuf {
    Paths::new(home, machine).shared()
}

/// Where a machine's /var lies on the host.
pub fn var_dir(home: &Home, machine: &str) -> PathBuf {
    Paths::new(home, machine).var()
}

/// The files of a machine as they lie on the host: under /var, or among its own changes.
pub fn look_at(home: &Home, machine: &str, path: &str) -> Option<Vec<u8>> {
    match path.strip_prefix("/var/") {
        Some(in_var) => std::fs::read(var_dir(home, machine).join(in_var)).ok(),
        None => read_file(home, machine, path),
    }
}

/// Whether a machine's own changes have this file (not under /var); also of one that is stopped.
pub fn has_file(home: &Home, machine: &str, path: &str) -> bool {
    Paths::new(home, machine).upper().join(path.trim_start_matches('/')).exists()
}

/// A file among a machine's own changes (not under /var), running or not.
pub fn read_file(home: &Home, machine: &str, path: &str) -> Option<Vec<u8>> {
    std::fs::read(Paths::new(home, machine).upper().join(path.trim_start_matches('/'))).ok()
}

/// Replaces a file of a machine, by a rename: nobody reads half of it. In one that runs
/// by way of its init's root, because what lies under a mounted overlay must not be changed.
pub fn write_file(home: &Home, machine: &str, file: &NodeFile) -> Result<()> {
    let paths = Paths::new(home, machine);
    // /var is no overlay.
    let target = match (file.path.strip_prefix("/var/"), paths.running()) {
        (Some(in_var), _) => paths.var().join(in_var),
        (None, Some(init)) => {
            PathBuf::from(format!("/proc/{}/root", init.pid)).join(file.path.trim_start_matches('/'))
        }
        (None, None) => paths.upper().join(file.path.trim_start_matches('/')),
    };
    Ok(base::atomic::replace(&target, &file.data, file.mode)?)
}

/// The root of a machine that runs, as its own processes see it: its sockets are reached through it.
pub fn root_of(home: &Home, machine: &str) -> Option<PathBuf> {
    Some(PathBuf::from(format!("/proc/{}/root", init_of(home, machine)?)))
}

/// The first process of a machine that runs.
pub fn init_of(home: &Home, machine: &str) -> Option<u32> {
    Paths::new(home, machine).running().map(|init| init.pid)
}

/// Ends when the machine does. An error when it does not run.
pub fn wait_end(home: &Home, machine: &str) -> Result<impl Future<Output = Result<()>> + use<>> {
    let init = Paths::new(home, machine).running();
    let handle = init.map(|init| Handle::open(&init)).transpose()?.flatten();
    let handle = handle.with_context(|| format!("machine {machine} does not run"))?;
    Ok(async move {
        while !handle.wait(std::time::Duration::from_secs(3600)).await? {}
        Ok(())
    })
}
