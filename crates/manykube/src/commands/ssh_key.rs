//! `ssh-key`: the private key that a node lets in.

use anyhow::Result;

use super::{cluster as common, print};
use crate::core;
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
    let machine = cluster.machine(node);
    // Where there is no machine there is only a place for its key, as in minikube.
    let path =
        ctx.run(core::ssh_key(ctx, &machine)).unwrap_or_else(|_| ctx.home.machine(&machine).join("id_rsa"));
    print(&format!("{}\n", path.display()));
    Ok(0)
}
