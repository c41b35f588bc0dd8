//! The virtual address with real processes, links and kernels' tables: three nodes on a bridge, then five, each
//! in a network namespace of its own, all of it in a namespace without a way out. API servers are
//! doubles that answer over TLS.
//!
//! This program plays all parts: `node DIR`, `api ADDRESS`, `client VIP N`, and without words the
//! test itself. VIP_ROUNDS sets how often each fault is repeated.

mod api;
mod client;
mod faults;
mod lab;

use std::process::ExitCode;

use anyhow::{Context, Result, bail};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["node", dir] => agent::component::run(dir.as_ref()),
        ["api", address] => api::run(address),
        ["client", vip, count] => client::print(vip, count),
        _ => test(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("{e:#}");
            ExitCode::FAILURE
        }
    }
}

fn test() -> Result<()> {
    if !nix::unistd::geteuid().is_root() {
        println!("vip: skipped, needs root to make network namespaces");
        return Ok(());
    }
    // From here on nothing that is sent can leave: the new namespace has no link but its own.
    if let Err(e) = nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET) {
        println!("vip: skipped, no network namespaces here: {e}");
        return Ok(());
    }
    for tool in ["ip", "nft", "conntrack", "ss", "nsenter", "unshare"] {
        if lab::run("which", &[tool]).is_err() {
            println!("vip: skipped, needs {tool}");
            return Ok(());
        }
    }
    // Measures fail-over times, which a busy machine may stretch: run by `make vip`, on purpose.
    let Some(rounds) = std::env::var("VIP_ROUNDS").ok().and_then(|r| r.parse().ok()) else {
        println!("vip: skipped, set VIP_ROUNDS to run it");
        return Ok(());
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(faults::all(rounds)).context("vip")?;
    Ok(())
}

/// Fails with the message unless `truth`.
fn ensure(truth: bool, message: impl FnOnce() -> String) -> Result<()> {
    if truth { Ok(()) } else { bail!("{}", message()) }
}
