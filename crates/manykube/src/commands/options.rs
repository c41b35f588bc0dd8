//! `options`: the flags that every command takes.

use anyhow::Result;

use super::print;
use crate::args;
use crate::ctx::Ctx;

pub fn run(ctx: &Ctx) -> Result<u8> {
    let mut text = String::from("The following options can be passed to any command:\n\n");
    for arg in args::definition(ctx.tool).get_arguments().filter(|a| !a.is_hide_set()) {
        let (Some(long), Some(help)) = (arg.get_long(), arg.get_help()) else { continue };
        let short = arg.get_short().map_or_else(|| "    ".to_owned(), |s| format!("-{s}, "));
        text += &format!("    {short}--{long}:\n        {help}\n\n");
    }
    print(&text);
    Ok(0)
}
