//! The program that holds a pod's namespaces: one C file in the Kubernetes module.

use std::path::Path;

use anyhow::Result;
use tokio::process::Command;

use super::command::Shell;
use super::golang;
use super::recipe::Module;
use crate::pins::Pins;

/// Leaves `pause` in `out`.
pub async fn build(shell: &Shell, pins: &Pins, tag: &str, kubernetes: &Module, work: &Path) -> Result<()> {
    let source = golang::download(shell, pins, work, kubernetes).await?.dir.join("build/pause/linux/pause.c");
    fs_err::create_dir_all(work.join("out"))?;
    let mut gcc = Command::new("gcc");
    gcc.args(["-Os", "-Wall", "-static", "-s"])
        .arg(format!("-DVERSION=v{tag}"))
        .arg("-o")
        .arg(work.join("out/pause"));
    shell.run(gcc.arg(source)).await
}
