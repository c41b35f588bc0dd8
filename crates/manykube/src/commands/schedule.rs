//! A stop that comes later: a process of ours that waits, and its pid and what `status` counts down to in the profile's
//! directory.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result};
use drivers::descriptors;
use jiff::Timestamp;
use rustix::process::{Pid, Signal, kill_process};

use crate::ctx::Ctx;
use crate::state::scheduled;

/// The clock may be set while we wait.
const LOOK: Duration = Duration::from_secs(5);
/// The hidden option of `stop` by which the waiting process is known.
const AT: &str = "--scheduled-at";

/// Replaces an earlier schedule.
pub fn stop_later(ctx: &Ctx, name: &str, after: Duration) -> Result<()> {
    cancel(ctx, name)?;
    let now = Timestamp::now().as_second();
    let at = now.saturating_add(i64::try_from(after.as_secs()).unwrap_or(i64::MAX));
    let mut command = std::process::Command::new("/proc/self/exe");
    command
        .args(["stop", "--profile", name, AT, &at.to_string()])
        .env("MINIKUBE_HOME", ctx.home.root())
        .env("MANYKUBE_HOME", ctx.home.root())
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    descriptors::keep_from(&mut command);
    let child = command.spawn().context("start the process that stops the cluster later")?;
    fs_err::write(scheduled::pid_file(&ctx.home, name), child.id().to_string())?;
    Ok(scheduled::set(&ctx.home, name, Some((now, after)))?)
}

/// Ends the process that waits, and forgets the schedule; nothing to do is fine.
pub fn cancel(ctx: &Ctx, name: &str) -> Result<()> {
    let file = scheduled::pid_file(&ctx.home, name);
    if let Some(pid) = scheduled::waiting(&ctx.home, name).filter(|pid| is_ours(*pid, name)) {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).context("a pid")?;
        match kill_process(pid, Signal::TERM) {
            Err(e) if e != rustix::io::Errno::SRCH => return Err(e).context("end a scheduled stop"),
            _ => {}
        }
    }
    match std::fs::remove_file(&file) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            return Err(e).with_context(|| format!("remove {}", file.display()));
        }
        _ => {}
    }
    Ok(scheduled::set(&ctx.home, name, None)?)
}

/// A pid that was written down long ago may be somebody else's by now.
fn is_ours(pid: u32, name: &str) -> bool {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<&[u8]> = line.split(|b| *b == 0).collect();
    words.contains(&AT.as_bytes()) && words.contains(&name.as_bytes())
}

/// In the waiting process: whether the stop is still wanted when its time has come.
pub async fn wait(ctx: &Ctx, name: &str, at: i64) -> bool {
    // The terminal that the stop was scheduled from may close.
    let _ = rustix::process::setsid();
    loop {
        let left = at.saturating_sub(Timestamp::now().as_second());
        let Some(left) = u64::try_from(left).ok().filter(|l| *l > 0) else { break };
        tokio::select! {
            () = tokio::time::sleep(Duration::from_secs(left).min(LOOK)) => {}
            () = ctx.cancel.cancelled() => return false,
        }
    }
    scheduled::waiting(&ctx.home, name) == Some(std::process::id())
}
