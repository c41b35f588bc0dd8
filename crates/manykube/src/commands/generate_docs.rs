//! `generate-docs` (hidden): docs/cli.md and man pages, from the definition that parses command lines.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::{Arg, Command};

use crate::args;
use crate::ctx::Ctx;

#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Where to write cli.md
    #[arg(long, default_value = "docs", value_name = "DIR")]
    pub path: PathBuf,
    /// Where to write man pages; none if left out
    #[arg(long, value_name = "DIR")]
    pub man: Option<PathBuf>,
}

pub fn run(_ctx: &Ctx, args: &Args) -> Result<u8> {
    let mut root = args::definition("manykube");
    root.build();
    fs_err::create_dir_all(&args.path)?;
    fs_err::write(args.path.join("cli.md"), markdown(&root))?;
    if let Some(dir) = &args.man {
        man_pages(&root, dir)?;
    }
    Ok(0)
}

fn man_pages(root: &Command, dir: &Path) -> Result<()> {
    fs_err::create_dir_all(dir)?;
    clap_mangen::generate_to(root.clone(), dir)
        .with_context(|| format!("write man pages to {}", dir.display()))
}

fn markdown(root: &Command) -> String {
    let mut text = String::from(
        "# The command line\n\nMade by `make docs` from the definition that parses it; a test keeps it true.\n\
         Called as `minikube`, the program answers under that name. Where it differs from minikube: \
         [compatibility.md](compatibility.md).\n\n## Options of every command\n\n",
    );
    root.get_arguments().filter(|a| shown(a)).for_each(|a| text += &line(a));
    for command in visible(root) {
        describe(command, "manykube", 2, &mut text);
    }
    text
}

fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|c| !c.is_hide_set())
}

fn describe(command: &Command, parent: &str, level: usize, text: &mut String) {
    let name = format!("{parent} {}", command.get_name());
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let _ = write!(text, "\n{} {name}\n\n{about}.\n", "#".repeat(level));
    let positionals: Vec<String> = command.get_positionals().filter(|a| !a.is_hide_set()).map(line).collect();
    if !positionals.is_empty() {
        let _ = write!(text, "\n{}", positionals.concat());
    }
    let own = |a: &&Arg| shown(a) && !a.is_positional() && !a.is_global_set();
    let mut headings: Vec<Option<&str>> = Vec::new();
    for arg in command.get_arguments().filter(own) {
        if !headings.contains(&arg.get_help_heading()) {
            headings.push(arg.get_help_heading());
        }
    }
    for heading in headings {
        match heading {
            Some(heading) => drop(write!(text, "\n**{heading}**\n\n")),
            None => text.push('\n'),
        }
        let of_group = command.get_arguments().filter(own).filter(|a| a.get_help_heading() == heading);
        of_group.for_each(|a| *text += &line(a));
    }
    if let Some(examples) = command.get_after_help() {
        let lines = examples.to_string();
        let lines = lines.lines().skip(1).map(str::trim).collect::<Vec<_>>().join("\n");
        let _ = write!(text, "\n```\n{lines}\n```\n");
    }
    for inner in visible(command) {
        describe(inner, &name, level + 1, text);
    }
}

fn shown(arg: &Arg) -> bool {
    !arg.is_hide_set() && arg.get_id() != "help"
}

fn line(arg: &Arg) -> String {
    let short = arg.get_short().map(|s| format!("-{s}, ")).unwrap_or_default();
    let value = arg.get_value_names().map(|n| n.join(" ")).unwrap_or_default();
    let takes = arg.get_num_args().is_none_or(|r| r.takes_values()) && value != "BOOL";
    let name = match arg.get_long() {
        Some(long) if takes && !value.is_empty() => format!("{short}--{long} {value}"),
        Some(long) => format!("{short}--{long}"),
        None => value,
    };
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let defaults: Vec<String> =
        arg.get_default_values().iter().map(|v| v.to_string_lossy().into_owned()).collect();
    let default = match defaults.join(",") {
        d if d.is_empty() || arg.is_hide_default_value_set() => String::new(),
        d => format!(" (default: `{d}`)"),
    };
    format!("- `{name}`: {}{default}\n", help.replace('|', "\\|").replace("{{", "{ {").replace("}}", "} }"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_in_the_repository_is_true() {
        let mut root = args::definition("manykube");
        root.build();
        let page = include_str!("../../../../docs/cli.md");
        assert!(markdown(&root) == page, "docs/cli.md is not what the command line is: run 'make docs'");
    }
}
