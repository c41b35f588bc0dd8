//! `completion`: a script for the shell. It asks this program for the words that may follow, so profiles and
//! nodes are those that there are.

use anyhow::{Context as _, Result};
use clap_complete::env::{Bash, EnvCompleter, Fish, Powershell, Zsh};

use super::print;
use crate::ctx::Ctx;

/// The variable by which a shell asks.
pub const VARIABLE: &str = "MANYKUBE_COMPLETE";

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum For {
    Bash,
    Zsh,
    Fish,
    Powershell,
}

#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// The shell
    #[arg(value_enum)]
    pub shell: For,
}

pub fn run(ctx: &Ctx, args: &Args) -> Result<u8> {
    let shell: &dyn EnvCompleter = match args.shell {
        For::Bash => &Bash,
        For::Zsh => &Zsh,
        For::Fish => &Fish,
        For::Powershell => &Powershell,
    };
    let mut script = Vec::new();
    shell
        .write_registration(VARIABLE, ctx.tool, ctx.tool, ctx.tool, &mut script)
        .context("write the script")?;
    print(&String::from_utf8_lossy(&script));
    Ok(0)
}
