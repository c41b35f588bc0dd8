//! Words that a shell can complete only by asking: profiles and nodes that there are.

use std::ffi::OsStr;

use clap::{Arg, Command};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};

use crate::{host, state};

/// Hangs the completers on all arguments that have something to ask for.
pub fn add(command: Command) -> Command {
    let of_nodes = ["node", "worker"].contains(&command.get_name());
    let command = command.mut_args(|arg| completer(arg, false));
    command.mut_subcommands(|sub| if of_nodes { sub.mut_args(|arg| completer(arg, true)) } else { add(sub) })
}

/// By their ids: flags that mean a node or a profile, and the names that `node` and `worker` take.
fn completer(arg: Arg, name_is_node: bool) -> Arg {
    match arg.get_id().as_str() {
        "profile" => arg.add(ArgValueCompleter::new(profiles)),
        "node" => arg.add(ArgValueCompleter::new(nodes)),
        "name" if name_is_node => arg.add(ArgValueCompleter::new(nodes)),
        _ => arg,
    }
}

fn begin_with(names: Vec<String>, typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    names.into_iter().filter(|n| n.starts_with(typed.as_ref())).map(CompletionCandidate::new).collect()
}

fn listed() -> Vec<state::profile::Listed> {
    let home = state::home::resolve(crate::tool(), &host::env).ok();
    home.and_then(|home| state::profile::list(&home).ok()).unwrap_or_default()
}

fn profiles(typed: &OsStr) -> Vec<CompletionCandidate> {
    begin_with(listed().into_iter().map(|(name, _)| name).collect(), typed)
}

/// Of all profiles: which one is meant may still be to come.
fn nodes(typed: &OsStr) -> Vec<CompletionCandidate> {
    let clusters = listed().into_iter().filter_map(|(_, file)| Some(file.ok()?.cluster));
    let names = clusters.flat_map(|c| c.nodes.iter().map(|n| c.machine(n)).collect::<Vec<_>>());
    begin_with(names.collect(), typed)
}
