//! Machines made of Linux namespaces, a cgroup and an overlay root: no daemon, nothing installed.
//!
//! All that a running machine holds (mounts, its end of the cable, processes) belongs to its
//! namespaces and goes with its init. What is left on the host is a directory, a cgroup, the
//! profile's bridge and its nft table.

mod binds;
mod cgroup;
mod console;
mod driver;
mod enter;
mod faults;
pub mod files;
mod guard;
mod host;
mod launch;
mod machine;
mod mount;
mod mounts;
mod needs;
mod network;
mod preflight;
mod process;
mod pty;
mod settings;

use std::ffi::OsString;
use std::process::ExitCode;

use model::Home;

pub use network::MTU;
pub use process::{Handle, Identity, boot_id, identify};

/// Programs of ours that must start single-threaded, because namespaces belong to threads.
pub const LAUNCH: &str = "native-launch";
pub const ENTER: &str = "native-enter";
pub const MOUNT: &str = "native-mount";

/// Runs `native-launch`, `native-enter` or `native-mount` when the command was called as such.
pub fn entry(command: &str, args: &[OsString]) -> Option<ExitCode> {
    match command {
        LAUNCH => Some(launch::main(args)),
        ENTER => Some(enter::main(args)),
        MOUNT => Some(mount::main(args)),
        _ => None,
    }
}

pub struct Native {
    home: Home,
}

impl Native {
    pub fn new(home: Home) -> Native {
        Native { home }
    }
}

/// The networks that are in use on this host, so that a new profile can keep clear of them.
pub async fn networks_in_use() -> anyhow::Result<Vec<ipnet::Ipv4Net>> {
    network::in_use().await
}

/// Whether machines of this host find cgroup v1.
pub fn cgroup_v1() -> anyhow::Result<bool> {
    Ok(matches!(cgroup::Version::of_host()?, cgroup::Version::V1(_)))
}

/// A machine whose root lies on this directory, running or not.
pub fn machine_on_image(home: &Home, rootfs: &std::path::Path) -> Option<String> {
    let entries = std::fs::read_dir(home.machines()).ok()?;
    let mut names = entries.flatten().filter_map(|e| e.file_name().into_string().ok());
    names.find(|name| machine::Paths::new(home, name).image_rootfs().is_ok_and(|used| used == rootfs))
}

/// Directory shared with a machine: the agent's socket is in it.
pub fn shared_dir(home: &Home, machine: &str) -> std::path::PathBuf {
    machine::Paths::new(home, machine).shared()
}

/// Does everything in the machine stand still? Nobody in it answers then.
pub fn is_frozen(home: &Home, machine: &str) -> bool {
    let cgroup = cgroup::Cgroup::of(machine, machine::Paths::new(home, machine).dir());
    cgroup.is_ok_and(|c| c.is_frozen())
}

/// Where a machine's /var lies on the host.
pub fn var_dir(home: &Home, machine: &str) -> std::path::PathBuf {
    machine::Paths::new(home, machine).var()
}

/// Bridge, cables of `running` and guards are in place.
pub async fn network_is_up(
    home: &Home,
    cluster: &model::Cluster,
    running: &[String],
) -> anyhow::Result<bool> {
    if !network::is_up(home, cluster, running).await? {
        return Ok(false);
    }
    let Ok(image) = Native::new(home.clone()).any_image() else { return Ok(false) };
    let (home, profile) = (home.clone(), cluster.name.clone());
    Ok(tokio::task::spawn_blocking(move || guard::is_up(&home, &profile, &image)).await?)
}

pub async fn is_connected(home: &Home, machine: &str) -> anyhow::Result<bool> {
    network::is_connected(home, machine).await
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
    machine::Paths::new(home, machine).upper().join(path.trim_start_matches('/')).exists()
}

/// A file among a machine's own changes (not under /var), running or not.
pub fn read_file(home: &Home, machine: &str, path: &str) -> Option<Vec<u8>> {
    std::fs::read(machine::Paths::new(home, machine).upper().join(path.trim_start_matches('/'))).ok()
}

/// Replaces a file of a machine, by a rename: nobody reads half of it. In one that runs
/// by way of its init's root, because what lies under a mounted overlay must not be changed.
pub fn write_file(home: &Home, machine: &str, file: &model::node_spec::NodeFile) -> anyhow::Result<()> {
    let paths = machine::Paths::new(home, machine);
    // /var is no overlay.
    let target = match (file.path.strip_prefix("/var/"), paths.running()) {
        (Some(in_var), _) => paths.var().join(in_var),
        (None, Some(init)) => std::path::PathBuf::from(format!("/proc/{}/root", init.pid))
            .join(file.path.trim_start_matches('/')),
        (None, None) => paths.upper().join(file.path.trim_start_matches('/')),
    };
    target.parent().map_or(Ok(()), fs_err::create_dir_all)?;
    let new = target.with_extension("new");
    fs_err::write(&new, &file.data)?;
    fs_err::set_permissions(&new, std::os::unix::fs::PermissionsExt::from_mode(file.mode))?;
    fs_err::rename(&new, &target).map_err(Into::into)
}

/// The root of a machine that runs, as its own processes see it: its sockets are reached through it.
pub fn root_of(home: &Home, machine: &str) -> Option<std::path::PathBuf> {
    Some(std::path::PathBuf::from(format!("/proc/{}/root", init_of(home, machine)?)))
}

/// The first process of a machine that runs.
pub fn init_of(home: &Home, machine: &str) -> Option<u32> {
    machine::Paths::new(home, machine).running().map(|init| init.pid)
}

/// Ends when the machine does. An error when it does not run.
pub fn wait_end(
    home: &Home,
    machine: &str,
) -> anyhow::Result<impl Future<Output = anyhow::Result<()>> + use<>> {
    let init = machine::Paths::new(home, machine).running();
    let handle = init.map(|init| process::Handle::open(&init)).transpose()?.flatten();
    let handle = anyhow::Context::with_context(handle, || format!("machine {machine} does not run"))?;
    Ok(async move {
        while !handle.wait(std::time::Duration::from_secs(3600)).await? {}
        Ok(())
    })
}
