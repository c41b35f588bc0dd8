//! `ip`: the address of a node.

use anyhow::Result;

use super::{cluster as common, print};
use crate::ctx::Ctx;

#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// The node; the primary one if left out
    #[arg(short, long)]
    pub node: Option<String>,
}

pub fn run(ctx: &Ctx, args: &Args) -> Result<u8> {
    show(ctx, args.node.as_deref())
}

pub fn show(ctx: &Ctx, node: Option<&str>) -> Result<u8> {
    let cluster = common::load(ctx)?;
    let node = common::node(&cluster, node)?;
    ctx.run(common::require_running(ctx, &cluster))?;
    print(&format!("{}\n", node.ip));
    Ok(0)
}
