//! Machines made of Linux namespaces, a cgroup and an overlay root: no daemon, nothing installed.
//!
//! All that a running machine holds (mounts, its end of the cable, processes) belongs to its
//! namespaces and goes with its init. What is left on the host is a directory, a cgroup, the
//! profile's bridge, its nft table and its rules in other firewalls.

pub(crate) mod binds;
pub(crate) mod borrowed;
mod bypass;
pub(crate) mod cgroup;
mod commands;
mod confine;
mod connect;
pub(crate) mod disk;
mod driver;
mod firewall;
mod forwarding;
mod freeze;
pub(crate) mod guard;
pub(crate) mod host;
pub(crate) mod launch;
pub(crate) mod lender;
pub mod loop_device;
mod mount;
pub(crate) mod mounts;
mod needs;
pub(crate) mod network;
pub(crate) mod preflight;
mod sealed;
mod settings;

use std::ffi::OsString;
use std::process::ExitCode;

use model::Home;

use crate::descriptors;

pub use host::{command_ends, reserve};
pub use network::MTU;

/// Programs of ours that must start single-threaded, because namespaces belong to threads.
pub const LAUNCH: &str = "native-launch";
pub const MOUNT: &str = "native-mount";

/// Runs `native-launch` or `native-mount` when the command was called as such.
pub fn entry(command: &str, args: &[OsString]) -> Option<ExitCode> {
    let main = match command {
        LAUNCH => launch::main,
        MOUNT => mount::main,
        _ => return None,
    };
    if let Err(e) = descriptors::keep_here() {
        eprintln!("keep what the caller has open out of the machine: {e}");
        return Some(ExitCode::FAILURE);
    }
    Some(main(args))
}

pub struct Native {
    home: Home,
}

impl Native {
    pub fn new(home: Home) -> Native {
        Native { home }
    }
}

/// Whether machines of this host find cgroup v1.
pub fn cgroup_v1() -> anyhow::Result<bool> {
    Ok(matches!(cgroup::Version::of_host()?, cgroup::Version::V1(_)))
}
