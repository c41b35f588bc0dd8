//! Directories of the host in nodes that run.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use model::Cluster;
use tokio::process::Command;

use super::driver_of;
use crate::ctx::Ctx;

/// The nodes that run, each with its first process, which is another one after a restart.
pub fn running(ctx: &Ctx, cluster: &Cluster) -> BTreeMap<String, u32> {
    let machines = cluster.nodes.iter().map(|n| cluster.machine(n));
    machines.filter_map(|m| drivers::machine::init_of(&ctx.home, &m).map(|init| (m, init))).collect()
}

pub async fn show(init: u32, machine: &str, host: &Path, node: &str, read_only: bool) -> Result<()> {
    let mut command = Command::new("/proc/self/exe");
    command.arg(drivers::native::MOUNT).arg(init.to_string()).arg(host).arg(node);
    command.arg(if read_only { "ro" } else { "rw" });
    let output = command.output().await.context("enter the machine")?;
    if !output.status.success() {
        bail!("node {machine}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

/// Of a node that still runs. A pod may keep it in use: then it goes when the pod does.
pub async fn hide(ctx: &Ctx, machine: &str, init: u32, node: &str) {
    if drivers::machine::init_of(&ctx.home, machine) != Some(init) {
        return;
    }
    let argv = ["umount", "--lazy", node].map(str::to_owned);
    match driver_of(ctx, machine).run(machine, &argv).await {
        Ok(output) if output.code == 0 => {}
        Ok(output) => ctx.warn(format!("{machine}: {}", String::from_utf8_lossy(&output.stderr).trim())),
        Err(e) => ctx.warn(format!("{machine}: {e:#}")),
    }
}
