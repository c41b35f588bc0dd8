//! Runs a command in a machine, whoever made it: by its first process and its cgroup.

use std::process::Stdio;

use anyhow::{Context, Result};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use super::cgroup::Cgroup;
use crate::driver::{Io, Output};

pub async fn run(pid: u32, cgroup: &Cgroup, argv: &[String], io: Io) -> Result<Output> {
    let cgroup = serde_json::to_string(cgroup)?;
    let mut command = Command::new("/proc/self/exe");
    command.arg(super::ENTER).arg(pid.to_string()).arg(cgroup).kill_on_drop(true);
    match io {
        Io::Inherit { tty } => {
            command.arg(if tty { "tty" } else { "plain" }).args(argv);
            let status = command.status().await.context("enter the machine")?;
            Ok(Output { code: status.code().unwrap_or(1), ..Output::default() })
        }
        Io::Captured { stdin } => {
            command.arg("plain").args(argv);
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = command.spawn().context("enter the machine")?;
            let mut input = child.stdin.take().context("the command's input")?;
            let feed = async move {
                // A command that does not read its input ends the pipe, which is its right.
                let _ = input.write_all(&stdin).await;
            };
            let (output, ()) = tokio::join!(child.wait_with_output(), feed);
            let output = output.context("wait for the command")?;
            Ok(Output {
                code: output.status.code().unwrap_or(1),
                stdout: output.stdout,
                stderr: output.stderr,
            })
        }
    }
}
