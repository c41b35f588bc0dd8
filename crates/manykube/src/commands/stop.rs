//! `stop`: all machines off, all state kept.

use std::time::Duration;

use anyhow::Result;
use model::{Fault, Reason};

use super::{cluster as common, schedule};
use crate::args::values::go_duration;
use crate::core;
use crate::ctx::Ctx;
use crate::inside::others;
use crate::report::{Event, Output, Style, steps};
use crate::state::lock::ProfileLock;
use crate::state::{profile, scheduled};

#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Stop all clusters
    #[arg(long)]
    pub all: bool,
    /// Leave the kubeconfig as it is
    #[arg(long)]
    pub keep_context_active: bool,
    /// Stop after this time, and return at once
    #[arg(long, value_name = "DURATION", value_parser = go_duration)]
    pub schedule: Option<Duration>,
    /// Do not stop later after all
    #[arg(long)]
    pub cancel_scheduled: bool,
    /// text, or json: one event per line
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    pub output: Output,
    /// This is the process that waits (seconds since 1970)
    #[arg(long, hide = true, value_name = "SECONDS")]
    pub scheduled_at: Option<i64>,
}

pub fn run(ctx: &Ctx, args: &Args) -> Result<u8> {
    if args.schedule.is_some_and(|d| !d.is_zero()) && args.cancel_scheduled {
        let message = "Cannot use both --schedule and --cancel-scheduled";
        return Err(Fault::new(Reason::Usage, message).into());
    }
    if !args.all {
        // Refused before anything is locked or recorded.
        profile::require(&ctx.home, &ctx.profile)?;
        return stop_each(ctx, args, std::slice::from_ref(&ctx.profile));
    }
    let others = others::here(&ctx.home);
    let mut profiles = profile::list(&ctx.home)?;
    profiles.retain(|(name, file)| file.is_ok() && !others.iter().any(|other| other.name == *name));
    let profiles: Vec<String> = profiles.into_iter().map(|(name, _)| name).collect();
    let code = stop_each(ctx, args, &profiles)?;
    others::refuse(ctx, "stop", Reason::StopTimeout, &others)?;
    Ok(code)
}

fn stop_each(ctx: &Ctx, args: &Args, profiles: &[String]) -> Result<u8> {
    if args.cancel_scheduled {
        profiles.iter().try_for_each(|name| schedule::cancel(ctx, name))?;
        ctx.emit(Event::info(Style::Stopped, "All existing scheduled stops cancelled"));
        return Ok(0);
    }
    if let Some(after) = args.schedule.filter(|d| !d.is_zero()) {
        for name in profiles {
            schedule::stop_later(ctx, name, after)?;
            let left = scheduled::go_seconds(i64::try_from(after.as_secs()).unwrap_or(i64::MAX));
            ctx.emit(Event::info(Style::Waiting, format!("\"{name}\" will be stopped in {left}")));
        }
        return Ok(0);
    }
    ctx.run(async {
        let mut stopped = 0;
        for name in profiles {
            match args.scheduled_at {
                Some(at) if !schedule::wait(ctx, name, at).await => return Ok(0),
                // Its own process: there is nobody to end.
                Some(_) => scheduled::set(&ctx.home, name, None)?,
                None => schedule::cancel(ctx, name)?,
            }
            stopped += stop(ctx, name, args.keep_context_active).await?;
        }
        let plural = if stopped == 1 { "" } else { "s" };
        let message = format!("{stopped} node{plural} stopped.");
        ctx.emit(Event::step(steps::stop::DONE, Style::Stopped, message));
        Ok(0)
    })
}

async fn stop(ctx: &Ctx, name: &str, keep_context: bool) -> Result<usize> {
    let _lock = ProfileLock::acquire(ctx, name).await?;
    let cluster = profile::require(&ctx.home, name)?.cluster;
    ctx.recorder.open(&ctx.home.profile_events(name))?;
    for node in cluster.nodes.iter().rev() {
        let message = format!("Stopping node \"{}\"  ...", cluster.machine(node));
        ctx.emit(Event::step(steps::stop::STOPPING, Style::Stopping, message));
    }
    super::fault::lift_if_possible(ctx, name, None).await;
    let stopped = core::stop(ctx, &cluster).await?;
    if !keep_context {
        common::remove_from_kubeconfig(&ctx.home, name)?;
    }
    // What waited for this is us, if anybody.
    let _ = std::fs::remove_file(scheduled::pid_file(&ctx.home, name));
    Ok(stopped)
}
