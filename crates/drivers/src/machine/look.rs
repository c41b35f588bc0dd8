//! What lies in a machine's directory, running or not.

use std::future::Future;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
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

/// What the machine's first process said since it booted last.
pub fn log(home: &Home, machine: &str) -> String {
    let said = super::files::read(home, machine, &format!("{}/agent.log", model::node_spec::LOG_DIR));
    String::from_utf8_lossy(&said.unwrap_or_default()).into_owned()
}

/// Where a machine's /var lies on the host: to be told to the user, never to be opened.
pub fn var_dir(home: &Home, machine: &str) -> PathBuf {
    Paths::new(home, machine).var()
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
