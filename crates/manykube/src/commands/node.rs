//! `node`: the nodes of a cluster.

use anyhow::Result;

use super::{cluster as common, print};
use crate::ctx::Ctx;

#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Clone, clap::Subcommand)]
pub enum Command {
    /// List the nodes and their addresses
    List,
}

pub fn run(ctx: &Ctx, args: &Args) -> Result<u8> {
    match args.command {
        Command::List => {
            let cluster = common::load(ctx)?;
            let lines = cluster.nodes.iter().map(|n| format!("{}\t{}\n", cluster.machine(n), n.ip));
            print(&lines.collect::<String>());
            Ok(0)
        }
    }
}
