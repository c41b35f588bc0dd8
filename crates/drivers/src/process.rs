//! Processes by identity: a pid alone may belong to somebody else by now.

use std::os::fd::OwnedFd;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal, test_kill_process};
use serde::{Deserialize, Serialize};

/// A process for good: its pid, when it started (clock ticks since boot) and in which boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    pub pid: u32,
    pub started: u64,
    pub boot_id: String,
}

pub fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

pub fn identify(pid: u32) -> Result<Identity> {
    let started = start_time(pid).with_context(|| format!("read the start time of process {pid}"))?;
    Ok(Identity { pid, started, boot_id: boot_id() })
}

/// Alive and not a zombie.
pub fn is_alive(identity: &Identity) -> bool {
    start_time(identity.pid) == Some(identity.started) && boot_id() == identity.boot_id
}

/// For certain: one that is hidden from us (`hidepid`) may well be there.
pub fn has_ended(identity: &Identity) -> bool {
    if boot_id() != identity.boot_id {
        return true;
    }
    match std::fs::read_to_string(stat(identity.pid)) {
        Ok(stat) => parse_stat(&stat) != Some(identity.started),
        Err(_) => {
            let pid = i32::try_from(identity.pid).ok().and_then(Pid::from_raw);
            pid.is_some_and(|pid| test_kill_process(pid) == Err(Errno::SRCH))
        }
    }
}

fn stat(pid: u32) -> String {
    format!("/proc/{pid}/stat")
}

fn start_time(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(stat(pid)).ok()?;
    parse_stat(&stat)
}

/// Field 22 of /proc/PID/stat, `None` for a zombie. The name in parentheses may contain anything.
fn parse_stat(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    if fields.next()? == "Z" {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// A handle that can never mean another process.
pub struct Handle {
    fd: OwnedFd,
}

impl Handle {
    /// `None` when the process is gone.
    pub fn open(identity: &Identity) -> Result<Option<Handle>> {
        let Some(pid) = i32::try_from(identity.pid).ok().and_then(Pid::from_raw) else {
            return Ok(None);
        };
        let fd = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(fd) => fd,
            Err(Errno::SRCH) => return Ok(None),
            Err(e) => return Err(e).with_context(|| format!("open process {}", identity.pid)),
        };
        // Asked after the handle was opened, so that what is asked about is what is held.
        Ok(is_alive(identity).then_some(Handle { fd }))
    }

    pub fn signal(&self, signal: Signal) -> Result<()> {
        match pidfd_send_signal(&self.fd, signal) {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(e) => Err(e).context("signal a machine's init"),
        }
    }

    /// Waits until the process has ended; `false` when it has not by then.
    pub async fn wait(&self, limit: Duration) -> Result<bool> {
        let fd = self.fd.try_clone().context("copy a process handle")?;
        tokio::task::spawn_blocking(move || {
            let mut fds = [PollFd::new(&fd, PollFlags::IN)];
            let limit = Timespec::try_from(limit).context("time limit")?;
            Ok(poll(&mut fds, Some(&limit)).context("wait for a process")? > 0)
        })
        .await?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_time_survives_odd_names() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4242 1 2";
        assert_eq!(parse_stat(stat), Some(4242));
        assert_eq!(parse_stat(&stat.replace(" S ", " Z ")), None);
        assert_eq!(parse_stat("nonsense"), None);
    }

    #[test]
    fn this_process_is_alive_and_an_impostor_is_not() {
        let me = identify(std::process::id()).unwrap();
        assert!(is_alive(&me));
        assert!(!is_alive(&Identity { started: me.started + 1, ..me.clone() }));
        assert!(!is_alive(&Identity { boot_id: "another".into(), ..me }));
    }
    #[test]
    fn who_has_ended() {
        let me = identify(std::process::id()).unwrap();
        assert!(!has_ended(&me));
        assert!(has_ended(&Identity { started: me.started + 1, ..me.clone() }));
        assert!(has_ended(&Identity { boot_id: "another".into(), ..me.clone() }));
        // Greater than any that the kernel gives.
        assert!(has_ended(&Identity { pid: 1 << 23, ..me }));
    }
}
