//! `license`: the terms under which this program is used.

use std::path::PathBuf;

use anyhow::Result;

use super::print;
use crate::ctx::Ctx;
use crate::report::{Event, Style};

const LICENSE: &str = include_str!("../../../../LICENSE");

#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Write them to this directory instead of printing them
    #[arg(short, long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

pub fn run(ctx: &Ctx, args: &Args) -> Result<u8> {
    let Some(dir) = &args.dir else {
        print(LICENSE);
        return Ok(0);
    };
    fs_err::create_dir_all(dir)?;
    let path = dir.join("LICENSE");
    fs_err::write(&path, LICENSE)?;
    ctx.emit(Event::info(Style::Normal, format!("The licence is in {}", path.display())));
    Ok(0)
}
