//! `native-mount PID HOST NODE rw|ro`: shows a directory of the host in a machine that runs.
//!
//! A program of its own, because it has to be in the machine's mount namespace to put there what it took
//! from the host's.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use nix::sched::{CloneFlags, setns};
use rustix::process::{PidfdFlags, pidfd_open};

use super::binds;
use crate::driver::Bind;

pub fn main(args: &[OsString]) -> ExitCode {
    match show(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("{e:#}");
            ExitCode::FAILURE
        }
    }
}

fn show(args: &[OsString]) -> Result<()> {
    let [pid, host, node, mode] = args else { bail!("usage: {} PID HOST NODE rw|ro", super::MOUNT) };
    let pid = pid.to_str().and_then(|p| p.parse().ok()).and_then(rustix::process::Pid::from_raw);
    let machine = pidfd_open(pid.context("not a pid")?, PidfdFlags::empty()).context("find the machine")?;
    let wanted = Bind {
        host: host.into(),
        node: node.to_str().context("a path that is no text")?.to_owned(),
        read_only: mode == "ro",
    };
    let tree = binds::take(&wanted)?;
    setns(&machine, CloneFlags::CLONE_NEWNS).context("enter the machine")?;
    binds::put(&tree, &wanted)
}
