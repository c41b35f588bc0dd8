//! What is the host's stays the host's: its disks and its memory, also for a node's root, who may make
//! device files as he likes.
//!
//! With cgroup v1 only. The rules are those of the parent of all machines, which no machine can see;
//! what a machine allows itself is never more than its parent has.

use std::path::Path;

use anyhow::Result;

use super::write;

/// All disks; /dev/mem, /dev/kmem and /dev/port. Making a file for them is left to runtimes, which do.
const HOSTS: [&str; 4] = ["b *:* rw", "c 1:1 rw", "c 1:2 rw", "c 1:4 rw"];

/// Does nothing in a group of another controller. Machines inherit the rules when they are made.
pub fn forbid(parent: &Path) -> Result<()> {
    let deny = parent.join("devices.deny");
    if !deny.exists() {
        return Ok(());
    }
    HOSTS.iter().try_for_each(|device| write(&deny, device))
}
