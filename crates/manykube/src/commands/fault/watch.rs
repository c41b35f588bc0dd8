//! `fault … --for`: a process of its own waits for the end of that time, because the command that put the
//! fault in is gone by then. One that dies leaves the fault to `fault heal` and `start`.

use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result};
use drivers::{Handle, Identity, descriptors, identify};
use model::injected::{Harm, Injected};
use rustix::process::Signal;

use super::records::{Record, Records};
use super::{args, now, undo};
use crate::core;
use crate::ctx::Ctx;
use crate::state::profile;

/// How often the clock is looked at, which somebody may set.
const LOOK: Duration = Duration::from_millis(500);
/// How long a program that is to be dead may live.
const AGAIN: Duration = Duration::from_millis(100);

/// Starts it. It waits for the records, which the caller holds.
pub fn spawn(ctx: &Ctx, fault: &Injected) -> Result<Identity> {
    let mut command = Command::new("/proc/self/exe");
    command.args(["--profile", &ctx.profile, "--skip-audit", "fault", "watch"]);
    command.args([&fault.machine, fault.harm.kind()]).arg0(ctx.tool);
    // It is to keep no directory busy; what is relative to this one is said in full.
    let cache = std::path::absolute(ctx.home.cache())?;
    command.current_dir("/").env("MANYKUBE_CACHE", cache);
    command.env("MANYKUBE_HOME", ctx.home.root()).env("MINIKUBE_HOME", ctx.home.root());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // SAFETY: setsid is async-signal-safe. A session of its own: Ctrl-C and the end of the terminal are not for it.
    unsafe { command.pre_exec(|| nix::unistd::setsid().map(drop).map_err(Into::into)) };
    descriptors::keep_from(&mut command);
    let child = command.spawn().context("start who undoes the fault")?;
    identify(child.id())
}

/// The end of a fault's watcher, if it has one that lives and is not ourselves.
pub fn end(record: &Record) -> Result<()> {
    let Some(watcher) = record.watcher.as_ref().filter(|w| w.pid != std::process::id()) else {
        return Ok(());
    };
    match Handle::open(watcher)? {
        Some(handle) => handle.signal(Signal::KILL),
        None => Ok(()),
    }
}

pub async fn run(ctx: &Ctx, machine: &str, kind: &str) -> Result<()> {
    let me = identify(std::process::id())?;
    let mine = |r: &Record| {
        let this = r.fault.machine == machine && r.fault.harm.kind() == kind;
        // Without a name: the command died before it wrote it down.
        this && r.watcher.as_ref().is_none_or(|w| *w == me)
    };
    let found =
        Records::open(&ctx.home, &ctx.profile)?.and_then(|r| r.list.iter().find(|r| mine(r)).cloned());
    let Some((fault, until)) = found.and_then(|r| Some((r.fault.clone(), r.fault.until?))) else {
        return Ok(());
    };
    let driver = core::driver_of(ctx, machine);
    while now() < until {
        match &fault.harm {
            Harm::ProcessKilled { process } => {
                let again = async {
                    Ok::<_, anyhow::Error>(driver.node(machine).await?.kill(args::program(process)).await?)
                };
                // A node that is off, frozen or boots may go on before the time is up.
                match tokio::time::timeout(LOOK, again).await {
                    Ok(Err(e)) => tracing::debug!("{e:#}"),
                    Err(_) => tracing::debug!("the agent of {machine} does not answer"),
                    Ok(Ok(_)) => {}
                }
                tokio::time::sleep(AGAIN).await;
            }
            _ => tokio::time::sleep(LOOK).await,
        }
    }
    let Some(mut records) = Records::open(&ctx.home, &ctx.profile)? else { return Ok(()) };
    let cluster = profile::require(&ctx.home, &ctx.profile)?.cluster;
    undo::undo(ctx, Some(&cluster), &mut records, mine).await.map(drop)
}
