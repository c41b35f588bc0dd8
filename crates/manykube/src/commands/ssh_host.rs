//! `ssh-host`: what a node is known by. We made its key, so there is nobody to believe.

use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::{cluster as common, print};
use crate::core;
use crate::ctx::Ctx;
use crate::host;

#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// The node; the primary one if left out
    #[arg(short, long)]
    pub node: Option<String>,
    /// Add it to ~/.ssh/known_hosts instead of printing it
    #[arg(long)]
    pub append_known: bool,
}

pub fn run(ctx: &Ctx, args: &Args) -> Result<u8> {
    let cluster = common::load(ctx)?;
    let node = common::node(&cluster, args.node.as_deref())?;
    ctx.run(common::require_running(ctx, &cluster))?;
    let key = ctx.run(core::ssh_host_key(ctx, &cluster.machine(node)))?;
    let line = known_hosts_line(&node.ip.to_string(), &key);
    if !args.append_known {
        print(&line);
        return Ok(0);
    }
    let home = host::env("HOME").filter(|h| !h.is_empty()).context("HOME is not set")?;
    let path = Path::new(&home).join(".ssh/known_hosts");
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    if known.lines().any(|l| l == line.trim_end()) {
        eprintln!("Host already added: {} ({})", cluster.machine(node), node.ip);
        return Ok(0);
    }
    if let Some(dir) = path.parent() {
        fs_err::create_dir_all(dir)?;
    }
    let mut file = fs_err::OpenOptions::new().create(true).append(true).open(&path)?;
    let gap = if known.is_empty() || known.ends_with('\n') { "" } else { "\n" };
    file.write_all(format!("{gap}{line}").as_bytes())?;
    eprintln!("Host added: {} ({})", cluster.machine(node), node.ip);
    Ok(0)
}

/// The address, the kind and the key; a comment means nothing there.
fn known_hosts_line(ip: &str, key: &str) -> String {
    let words: Vec<&str> = key.split_whitespace().take(2).collect();
    format!("{ip} {}\n", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_known_hosts() {
        assert_eq!(known_hosts_line("192.168.49.2", "ssh-x AAAA demo\n"), "192.168.49.2 ssh-x AAAA\n");
    }
}
