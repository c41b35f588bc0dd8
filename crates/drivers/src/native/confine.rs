//! Ways from root in a node to the host by the kernel that they share, closed as far as Kubernetes allows. Root in a
//! node without a user namespace may undo the mounts; an ordinary pod with a `hostPath` volume may not.

use std::path::Path;

use anyhow::{Context, Result};
use nix::mount::{MsFlags, mount};
use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set};

use super::binds;

/// Kernel modules, ports and disks as raw bytes, another kernel, files by handle instead of by path.
const DROPPED: [CapabilitySet; 4] = [
    CapabilitySet::SYS_MODULE,
    CapabilitySet::SYS_RAWIO,
    CapabilitySet::SYS_BOOT,
    CapabilitySet::DAC_READ_SEARCH,
];

/// Programs that the kernel starts outside of any node, and keys that reach the whole host.
const HOST_WIDE: [&str; 5] = [
    "proc/sys/kernel/core_pattern",
    "proc/sys/kernel/modprobe",
    "proc/sys/kernel/poweroff_cmd",
    "proc/sysrq-trigger",
    "sys/kernel/uevent_helper",
];

/// For this process and all that it starts. The files are those below `root`.
pub fn confine(root: &Path) -> Result<()> {
    for path in HOST_WIDE.map(|path| root.join(path)).iter().filter(|path| path.exists()) {
        mount(Some(path), path, None::<&str>, MsFlags::MS_BIND, None::<&str>)
            .with_context(|| format!("cover {}", path.display()))?;
        binds::make_read_only(path)?;
    }
    DROPPED.into_iter().try_for_each(|capability| {
        remove_capability_from_bounding_set(capability).context("give up a capability")
    })
}
