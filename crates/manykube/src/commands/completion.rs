//! `completion`: a script for the shell.

use anyhow::Result;
use clap_complete::Shell;

use super::print;
use crate::args;
use crate::ctx::Ctx;

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
    let shell = match args.shell {
        For::Bash => Shell::Bash,
        For::Zsh => Shell::Zsh,
        For::Fish => Shell::Fish,
        For::Powershell => Shell::PowerShell,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut args::definition(ctx.tool), ctx.tool, &mut script);
    print(&String::from_utf8_lossy(&script));
    Ok(0)
}
