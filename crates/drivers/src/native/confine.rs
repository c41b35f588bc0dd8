//! Ways from root in a node to the host by the kernel that they share, closed as far as Kubernetes allows. Root in a
//! node without a user namespace may undo the mounts; an ordinary pod with a `hostPath` volume may not.

use std::path::Path;

use anyhow::{Context, Result};
use nix::mount::{MsFlags, mount};

use super::binds;

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
    base::capabilities::drop().context("give up capabilities")
}
