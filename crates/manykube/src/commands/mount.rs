//! `mount`: a directory of the host in every node, as long as the command runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use model::{Cluster, Fault, Reason};

use super::cluster as common;
use crate::core::mounts;
use crate::ctx::Ctx;
use crate::report::{Event, Style};

/// Also on nodes that start while it runs: this often they are looked for.
const LOOK: Duration = Duration::from_secs(1);
/// minikube's, when it is told to end.
const ENDED: u8 = 11;

#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// The directory of the host, and where the nodes see it
    #[arg(value_name = "HOST:NODE[:ro]")]
    pub what: Option<String>,
    /// End the mounts of this cluster that run in other terminals
    #[arg(long)]
    pub kill: bool,
    // Of a file system over the network, which this is not.
    #[arg(long, hide = true, default_value = "")]
    ip: String,
    #[arg(long, hide = true, default_value_t = 0)]
    port: u16,
    #[arg(long = "type", hide = true, default_value = "9p")]
    kind: String,
    #[arg(long = "9p-version", hide = true, default_value = "")]
    version: String,
    #[arg(long, hide = true, default_value = "docker")]
    uid: String,
    #[arg(long, hide = true, default_value = "docker")]
    gid: String,
    #[arg(long, hide = true, default_value_t = 0)]
    msize: u32,
    #[arg(long, hide = true)]
    options: Vec<String>,
}

pub fn run(ctx: &Ctx, args: &Args) -> Result<u8> {
    let cluster = common::load(ctx)?;
    let record = ctx.home.profile(&cluster.name).join(".mount-process");
    if args.kill {
        end_others(&record);
        return Ok(0);
    }
    let (host, node, read_only) = parse(args.what.as_deref())?;
    let result = ctx.run(async {
        common::require_running(ctx, &cluster).await?;
        note(&record)?;
        let message = format!("Mounting host path {} into all nodes as {node} ...", host.display());
        ctx.emit(Event::info(Style::Starting, message));
        let mut mounted = BTreeMap::new();
        let kept = keep(ctx, &cluster, (&host, &node, read_only), &mut mounted).await;
        for (machine, init) in mounted {
            mounts::hide(ctx, &machine, init, &node).await;
        }
        forget(&record);
        kept
    });
    result.map(|()| ENDED)
}

async fn keep(
    ctx: &Ctx,
    cluster: &Cluster,
    (host, node, read_only): (&Path, &str, bool),
    mounted: &mut BTreeMap<String, u32>,
) -> Result<()> {
    let mut first = true;
    loop {
        for (machine, init) in mounts::running(ctx, cluster) {
            if mounted.get(&machine) != Some(&init) {
                mounts::show(init, &machine, host, node, read_only).await?;
                mounted.insert(machine, init);
            }
        }
        if std::mem::replace(&mut first, false) {
            let message = format!("Successfully mounted {} to {node}", host.display());
            ctx.emit(Event::info(Style::Ready, message));
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            () = ctx.cancel.cancelled() => return Ok(()),
        }
    }
}

fn parse(what: Option<&str>) -> Result<(PathBuf, String, bool), Fault> {
    let wrong =
        |message: String| Fault::new(Reason::Usage, message).advice("Write HOST:NODE, e.g. ./data:/data");
    let what = what.ok_or_else(|| wrong("Please specify the directory to be mounted".to_owned()))?;
    let mut parts: Vec<&str> = what.split(':').collect();
    let read_only = parts.len() > 2 && parts.last() == Some(&"ro");
    if read_only || parts.last() == Some(&"rw") && parts.len() > 2 {
        parts.pop();
    }
    let [host, node] = parts[..] else { return Err(wrong(format!("{what:?} is not HOST:NODE"))) };
    if !node.starts_with('/') || node == "/" {
        return Err(wrong(format!("{node:?} is no place in a node: it must begin with /")));
    }
    let path = std::fs::canonicalize(host).map_err(|e| {
        Fault::new(Reason::PathMissing, format!("Cannot find directory {host} for mount: {e}"))
    })?;
    Ok((path, node.to_owned(), read_only))
}

/// Process ids, as minikube keeps them.
fn note(record: &Path) -> Result<()> {
    let mut pids = std::fs::read_to_string(record).unwrap_or_default();
    pids = format!("{} {}", pids.trim(), std::process::id());
    Ok(fs_err::write(record, pids.trim())?)
}

fn forget(record: &Path) {
    let text = std::fs::read_to_string(record).unwrap_or_default();
    let own = std::process::id().to_string();
    let left: Vec<&str> = text.split_whitespace().filter(|p| *p != own).collect();
    let _ =
        if left.is_empty() { std::fs::remove_file(record) } else { std::fs::write(record, left.join(" ")) };
}

/// A number may be another process' by now: only one that is this program is ended.
fn end_others(record: &Path) {
    let text = std::fs::read_to_string(record).unwrap_or_default();
    for pid in text.split_whitespace().filter_map(|p| p.parse::<i32>().ok()) {
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let is_mount = command.split(|b| *b == 0).any(|word| word == b"mount");
        if let Some(pid) = rustix::process::Pid::from_raw(pid).filter(|_| is_mount) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
    }
    let _ = std::fs::remove_file(record);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_and_where() {
        assert_eq!(parse(Some("/tmp:/data")).unwrap(), ("/tmp".into(), "/data".into(), false));
        assert_eq!(parse(Some("/tmp:/data:ro")).unwrap(), ("/tmp".into(), "/data".into(), true));
        for bad in [None, Some("/tmp"), Some("/tmp:data"), Some("/tmp:/"), Some("a:b:c:d")] {
            assert_eq!(parse(bad).unwrap_err().reason, Reason::Usage, "{bad:?}");
        }
        assert_eq!(parse(Some("/not/there:/data")).unwrap_err().reason, Reason::PathMissing);
    }
}
