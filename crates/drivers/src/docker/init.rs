//! `docker-init`: the first process of a container becomes a node, as the launcher of the native driver does.
//! What the engine has mounted is left behind, but for what the driver put below `/.manykube`.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use nix::sched::{CloneFlags, unshare};

use crate::descriptors;
use crate::machine::Paths;
use crate::native::cgroup::{Cgroup, Version};
use crate::native::disk;
use crate::native::launch::{Launch, Never, run_agent};

/// Where the container sees the machine's directory, our programs, container images and what of the host it is to show.
pub const MACHINE: &str = "/.manykube/machine";
pub const PROGRAMS: &str = "/.manykube/programs";
pub const IMAGES: &str = "/.manykube/images";
pub const BINDS: &str = "/.manykube/binds";

pub fn main() -> ExitCode {
    let error = match begin() {
        Ok(never) => match never {},
        Err(error) => error,
    };
    eprintln!("{error:#}");
    // Where whoever waits for the machine looks; nobody else would tell.
    let log = Paths::at(MACHINE).var().join("log/manykube/agent.log");
    let _ = base::atomic::replace(&log, format!("{error:#}\n").as_bytes(), 0o644);
    ExitCode::FAILURE
}

fn begin() -> Result<Never> {
    descriptors::keep_here()?;
    let paths = Paths::at(MACHINE);
    let mut launch: Launch = serde_json::from_slice(&fs_err::read(paths.launch_file())?)?;
    // The top of the container's own cgroup namespace.
    launch.cgroup = Cgroup { version: Version::of_host()?, path: "".into() };
    match &launch.cgroup.version {
        Version::V2(one) => {
            fs_err::create_dir_all(Path::new(&one.mount).join("init.scope"))?;
            launch.cgroup.settle()?;
            launch.cgroup.pin(&launch.processors)?;
        }
        // podman gives none with v1: all nodes would have their pods at the top of the host's.
        Version::V1(_) => {
            unshare(CloneFlags::CLONE_NEWCGROUP).context("make a cgroup namespace")?;
        }
    }
    let disk = disk::open(&paths)?;
    // The engine's exec is the channel.
    run_agent(&launch, &paths, disk, None)
}
