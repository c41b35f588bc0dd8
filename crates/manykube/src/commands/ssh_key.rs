//! `ssh-key`: the private key that a node lets in.

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
    let cluster = common::load(ctx)?;
    let node = common::node(&cluster, args.node.as_deref())?;
    print(&format!("{}\n", ctx.home.machine(&cluster.machine(node)).join("id_rsa").display()));
    Ok(0)
}
