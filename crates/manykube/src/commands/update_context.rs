//! `update-context`: point kubectl to the cluster again.

use anyhow::Result;

use super::cluster as common;
use crate::ctx::Ctx;
use crate::report::{Event, Style};

#[derive(Debug, Clone, clap::Args)]
pub struct Args {}

pub fn run(ctx: &Ctx, _args: &Args) -> Result<u8> {
    let cluster = common::load(ctx)?;
    ctx.run(common::require_running(ctx, &cluster))?;
    let name = &cluster.name;
    let message = if common::write_kubeconfig(ctx, &cluster, true)? {
        format!("\"{name}\" context has been updated to point to {}", crate::core::server(ctx, &cluster))
    } else {
        format!("No changes required for the \"{name}\" context")
    };
    ctx.emit(Event::info(Style::Sparkle, message));
    ctx.emit(Event::info(Style::Ready, format!("Current context is \"{name}\"")));
    Ok(0)
}
