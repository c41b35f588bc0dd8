//! `ssh`: a shell or a command in a node. No SSH is involved: the driver enters the machine.

use std::io::IsTerminal as _;

use anyhow::Result;

use super::cluster as common;
use crate::core;
use crate::ctx::Ctx;

#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// The node; the primary one if left out
    #[arg(short, long)]
    pub node: Option<String>,
    #[arg(long, hide = true)]
    native_ssh: bool,
    /// The command; a shell if left out
    pub command: Vec<String>,
}

pub fn run(ctx: &Ctx, args: &Args) -> Result<u8> {
    enter(ctx, args.node.as_deref(), &args.command)
}

pub fn enter(ctx: &Ctx, node: Option<&str>, command: &[String]) -> Result<u8> {
    let cluster = common::load(ctx)?;
    let node = common::node(&cluster, node)?;
    let code = ctx.run(async {
        let seen = common::require_running(ctx, &cluster).await?;
        common::require_node(&cluster, node, &seen)?;
        let tty = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        core::exec(ctx, &cluster, node, argv(command), tty).await
    })?;
    if code != 0 && !command.is_empty() {
        eprintln!("ssh: Process exited with status {code}");
    }
    // minikube flattens every failure to 1, and scripts compare with that.
    Ok(u8::from(code != 0))
}

/// The words are joined and given to a shell there, as ssh does.
fn argv(command: &[String]) -> Vec<String> {
    let shell = ["/bin/bash", "-l"].map(str::to_owned).to_vec();
    if command.is_empty() { shell } else { [shell, vec!["-c".to_owned(), command.join(" ")]].concat() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_joined_for_a_shell() {
        assert_eq!(argv(&[]), ["/bin/bash", "-l"]);
        assert_eq!(argv(&["ls".into(), "-l".into(), "/a b".into()]), ["/bin/bash", "-l", "-c", "ls -l /a b"]);
    }
}
