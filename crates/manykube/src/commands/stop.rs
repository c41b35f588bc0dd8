//! `stop`: all machines off, all state kept.

use anyhow::Result;
use model::{Fault, Reason};

use super::cluster as common;
use crate::core;
use crate::ctx::Ctx;
use crate::report::{Event, Output, Style, steps};
use crate::state::lock::ProfileLock;
use crate::state::profile;

#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Stop all clusters
    #[arg(long)]
    pub all: bool,
    /// Leave the kubeconfig as it is
    #[arg(long)]
    pub keep_context_active: bool,
    /// Stop later
    #[arg(long, value_name = "DURATION")]
    pub schedule: Option<String>,
    /// Do not stop later after all
    #[arg(long)]
    pub cancel_scheduled: bool,
    /// text, or json: one event per line
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    pub output: Output,
}

pub fn run(ctx: &Ctx, args: &Args) -> Result<u8> {
    if args.schedule.as_deref().is_some_and(|s| !s.is_empty() && s != "0s") || args.cancel_scheduled {
        return Err(Fault::new(Reason::Unimplemented, "Scheduled stops are not supported yet").into());
    }
    let profiles: Vec<String> = if args.all {
        profile::list(&ctx.home)?.into_iter().filter(|(_, f)| f.is_ok()).map(|(name, _)| name).collect()
    } else {
        // Refused before anything is locked or recorded.
        profile::require(&ctx.home, &ctx.profile)?;
        vec![ctx.profile.clone()]
    };
    ctx.run(async {
        let mut stopped = 0;
        for name in &profiles {
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
    let stopped = core::stop(ctx, &cluster).await?;
    if !keep_context {
        common::remove_from_kubeconfig(name)?;
    }
    Ok(stopped)
}
