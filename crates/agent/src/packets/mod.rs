//! Packets that this node loses or holds back on purpose, as the host wants it.
//!
//! The document outlives a boot: a node that starts again while it is cut off is cut off from its first packet on.

mod delay;
mod rules;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context as _, Result, bail};
use base::atomic;
use model::injected::PacketFaults;
use model::node_spec::{PACKET_FAULTS_PATH, RUN_DIR};
use rules::Hooks;

use crate::commands;
use crate::network::LINK;
use crate::reaper::Reaper;

const NFT: &str = "/usr/sbin/nft";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Done {
    All,
    /// This kernel cannot hold packets back. Nothing was changed.
    NoDelays,
}

/// The host's wish. A node without a link yet follows it as soon as there is one.
pub fn set(faults: &PacketFaults) -> Result<Done> {
    let _one = lock()?;
    let path = Path::new(PACKET_FAULTS_PATH);
    if faults.is_none() {
        atomic::remove(path)?;
    } else {
        atomic::replace(path, &serde_json::to_vec(faults)?, 0o600)?;
    }
    // Looked for after the document is written: a boot looks at these two the other way round, so one of both acts.
    if !Path::new("/sys/class/net").join(LINK).exists() {
        return Ok(Done::All);
    }
    apply(faults)
}

/// Before the link is switched on. In a process of its own, because programs are waited for.
pub async fn at_boot(reaper: &Reaper) -> Result<()> {
    if !Path::new(PACKET_FAULTS_PATH).exists() {
        return Ok(());
    }
    let argv = ["/proc/self/exe", "agent", "packet-faults"].map(str::to_owned);
    commands::feed(reaper, &argv, &[]).await.context("lose packets on purpose").map(drop)
}

/// `agent packet-faults`: does what the document says.
pub fn run() -> ExitCode {
    let done = || -> Result<Done> {
        let _one = lock()?;
        match std::fs::read(PACKET_FAULTS_PATH) {
            Ok(text) => apply(&serde_json::from_slice(&text).context("understand the faults")?),
            // The host took it back a moment ago.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Done::All),
            Err(e) => Err(e).context("read the faults"),
        }
    };
    match done() {
        Ok(Done::All) => ExitCode::SUCCESS,
        Ok(Done::NoDelays) => {
            eprintln!("this kernel has no netem");
            ExitCode::FAILURE
        }
        Err(e) => {
            eprintln!("{e:#}");
            ExitCode::FAILURE
        }
    }
}

/// One at a time: two connections of the host, or one and the boot.
fn lock() -> Result<File> {
    let file = fs_err::File::create(Path::new(RUN_DIR).join("packet-faults.lock"))?.into_parts().0;
    file.lock().context("wait for the lock of faults")?;
    Ok(file)
}

fn apply(faults: &PacketFaults) -> Result<Done> {
    if !delay::set(faults.slowness)? {
        return Ok(Done::NoDelays);
    }
    let tables = output(NFT, &["list", "tables"], "")?;
    let script = |hooks| rules::script(&tables, LINK, faults, hooks);
    if let Err(both) = output(NFT, &["-f", "-"], &script(Hooks::Both)) {
        // Before Linux 5.16 there is no hook for what goes out. Where this fails too, the first error says more.
        output(NFT, &["-f", "-"], &script(Hooks::Ingress)).map_err(|_| both)?;
    }
    Ok(Done::All)
}

/// Runs a program to its end; what it prints.
fn output(program: &str, args: &[&str], input: &str) -> Result<String> {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("run {program}"))?;
    child.stdin.take().context("its input")?.write_all(input.as_bytes()).context("write its input")?;
    let ended = child.wait_with_output().with_context(|| format!("wait for {program}"))?;
    if !ended.status.success() {
        bail!("{program} refused: {}", String::from_utf8_lossy(&ended.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&ended.stdout).into_owned())
}
