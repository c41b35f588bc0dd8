//! Can this host run native machines?

use std::path::Path;

use model::{Fault, Home, Reason};
use nix::sys::statfs::{OVERLAYFS_SUPER_MAGIC, statfs};

use super::cgroup::Version;

pub fn check(home: &Home) -> Result<(), Fault> {
    if !nix::unistd::geteuid().is_root() {
        return Err(Fault::new(
            Reason::DriverNeedsRoot,
            "The \"native\" driver makes namespaces and must be run as root.",
        )
        .advice("Run the same command with sudo, or choose another driver with --driver."));
    }
    if !filesystems_have("overlay") {
        return Err(Fault::new(
            Reason::ProviderNotFound,
            "The kernel has no overlay file system, which the \"native\" driver needs.",
        )
        .advice("Load it with: modprobe overlay"));
    }
    controllers()?;
    let text = home.root().to_string_lossy();
    if text.contains([',', ':']) || home.cache().to_string_lossy().contains([',', ':']) {
        return Err(Fault::new(
            Reason::HostUnsupported,
            format!(
                "The home directory {text} has ',' or ':' in its name, which overlay mounts cannot take."
            ),
        )
        .advice("Set MANYKUBE_HOME to another directory."));
    }
    // The nearest directory that exists: the home may not be made yet.
    let existing = home.root().ancestors().find(|p| p.exists()).unwrap_or(Path::new("/"));
    if statfs(existing).is_ok_and(|s| s.filesystem_type() == OVERLAYFS_SUPER_MAGIC) {
        return Err(Fault::new(
            Reason::HostUnsupported,
            format!(
                "{} lies on an overlay file system, on which nodes cannot put their own.",
                existing.display()
            ),
        )
        .advice("Set MANYKUBE_HOME to a directory on a real disk or volume."));
    }
    Ok(())
}

fn controllers() -> Result<(), Fault> {
    let fault = |message| Fault::new(Reason::ProviderNotFound, message);
    let look = || {
        let version = Version::of_host()?;
        anyhow::Ok((version.missing()?, version.is_occupied()?))
    };
    let (missing, occupied) = look().map_err(|e| {
        fault(format!("The \"native\" driver finds no cgroups: {e:#}."))
            .advice("Mount them with: mount -t cgroup2 cgroup2 /sys/fs/cgroup")
    })?;
    if !missing.is_empty() {
        let missing = missing.join(", ");
        return Err(fault(format!("This host offers no cgroup controller {missing}, which nodes need."))
            .advice(
                "Switch it on in the kernel's command line (cgroup_enable=memory), or in the container's.",
            ));
    }
    if occupied {
        return Err(fault(
            "The processes of this container are in its top cgroup, which therefore gives nodes no controllers."
                .to_owned(),
        )
        .advice("Run the container with --cgroupns=host, or move its processes into a group below first."));
    }
    Ok(())
}

fn filesystems_have(name: &str) -> bool {
    let listed = || {
        std::fs::read_to_string("/proc/filesystems")
            .is_ok_and(|text| text.lines().any(|l| l.split_ascii_whitespace().last() == Some(name)))
    };
    // A module is listed only once it is loaded.
    listed() || std::process::Command::new("modprobe").arg(name).status().is_ok() && listed()
}
