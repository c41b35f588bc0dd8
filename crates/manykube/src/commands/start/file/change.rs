//! A file for a cluster that exists: what it adds, changes and removes.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use cluster_file::Diff;
use model::{Cluster, Fault, Node, Reason};

use crate::core;

#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// One per node and setting, for the user.
    pub lines: Vec<String>,
    pub removed: Vec<Node>,
}

pub fn changes(old: &Cluster, new: &Cluster) -> Result<Changes, Fault> {
    let diff = cluster_file::diff(old, new).map_err(|fixed| {
        let lines: Vec<String> = fixed.iter().map(ToString::to_string).collect();
        Fault::new(Reason::Usage, lines.join("\n"))
    })?;
    Ok(Changes { lines: lines(old, new, &diff), removed: diff.removed })
}

fn lines(old: &Cluster, new: &Cluster, diff: &Diff) -> Vec<String> {
    let role = |n: &Node| if n.control_plane { "control-plane" } else { "worker" };
    let added = diff.added.iter().map(|n| format!("+ {} ({})", new.machine(n), role(n)));
    let removed = diff.removed.iter().map(|n| format!("- {} ({})", old.machine(n), role(n)));
    let cluster = diff.cluster.iter().map(|c| format!("~ {}: {} -> {} (live)", c.what, c.from, c.to));
    added.chain(cluster).chain(core::changes(old, new)).chain(removed).collect()
}

/// Removing nodes is asked for, unless `--yes` was said.
pub fn confirm(removed: &[String], yes: bool) -> Result<(), Fault> {
    if removed.is_empty() || yes {
        return Ok(());
    }
    let list = removed.join(", ");
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        eprint!("Remove {list}, with all that is in there? [y/N] ");
        let _ = std::io::stderr().flush();
        let mut answer = String::new();
        let _ = stdin.lock().read_line(&mut answer);
        if matches!(answer.trim(), "y" | "Y" | "yes") {
            return Ok(());
        }
    }
    Err(Fault::new(Reason::Usage, format!("The file has no {list} any more: nothing was changed"))
        .advice("Say --yes to remove what the file does not have"))
}
