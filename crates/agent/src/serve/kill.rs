//! Programs of this node that are killed on purpose, by the names they were called by.

use anyhow::{Context as _, Result};
use protocol::messages::Killed;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// Kills all processes of a program. The agent itself is not among them: without it there is no node.
pub fn kill(program: &str) -> Result<Killed> {
    let (mut killed, mut running) = (0, Vec::new());
    for pid in others()? {
        // Opened before the name is read: a number that changed hands meanwhile is not killed.
        let process = match pidfd_open(pid, PidfdFlags::empty()) {
            Err(Errno::SRCH) => continue,
            opened => opened.context("open a process")?,
        };
        let Some(name) = name(pid) else { continue };
        if name == program {
            match pidfd_send_signal(&process, Signal::KILL) {
                Ok(()) => killed += 1,
                Err(Errno::SRCH) => {}
                Err(e) => return Err(e).with_context(|| format!("kill {name}")),
            }
        }
        running.push(name);
    }
    running.sort();
    running.dedup();
    Ok(Killed { count: killed, running })
}

/// All processes but the first one and this one.
fn others() -> Result<Vec<Pid>> {
    let own = [1, i32::try_from(std::process::id())?];
    let numbers = fs_err::read_dir("/proc")?.flatten().filter_map(|e| e.file_name().to_str()?.parse().ok());
    Ok(numbers.filter(|pid: &i32| !own.contains(pid)).filter_map(Pid::from_raw).collect())
}

/// The name a process was called by, without its directory. A thread of the kernel has none.
fn name(pid: Pid) -> Option<String> {
    let line = std::fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).ok()?;
    let first = line.split(|b| *b == 0).next().filter(|word| !word.is_empty())?;
    Some(String::from_utf8_lossy(first).rsplit('/').next()?.to_owned())
}
