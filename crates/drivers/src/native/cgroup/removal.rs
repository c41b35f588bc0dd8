//! The end of a group and of everything below it.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// How long the kernel may take to bury the dead.
const BURIAL: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(10);

/// The machine has ended, and its namespace has killed all that was in it. Where the kernel can kill a
/// whole group, it is asked to: also whoever was on the way in then does not keep the group busy.
pub fn remove(group: &Path) -> Result<()> {
    let kill = group.join("cgroup.kill");
    if kill.exists() {
        fs_err::write(&kill, "1")?;
    }
    remove_tree(group, Instant::now() + BURIAL)
}

fn remove_tree(group: &Path, deadline: Instant) -> Result<()> {
    let entries = match std::fs::read_dir(group) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(e).with_context(|| format!("list {}", group.display())),
    };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|t| t.is_dir()) {
            remove_tree(&entry.path(), deadline)?;
        }
    }
    loop {
        match std::fs::remove_dir(group) {
            // Who has just ended may still be counted for a moment.
            Err(e) if e.kind() == std::io::ErrorKind::ResourceBusy && Instant::now() < deadline => {
                std::thread::sleep(LOOK);
            }
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                return Err(e).with_context(|| format!("remove {}", group.display()));
            }
            _ => return Ok(()),
        }
    }
}
