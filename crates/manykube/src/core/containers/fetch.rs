//! Images that come from registries and go there, and to files, through a node's own containerd.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use containers::Node as Store;
use model::Cluster;
use protocol::messages::Start;
use protocol::{ExecEvent, Output};
use tokio::time::{sleep, timeout};

use super::{Stores, note, spread};
use crate::core::driver_of;
use crate::ctx::Ctx;

/// Where the node is told about registries.
const HOSTS: &str = "/etc/containerd/certs.d";
/// A registry that sends nothing for so long is not going to.
const SILENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(500);
/// Bytes of what a command says when it fails.
const LONGEST_WORDS: usize = 64 << 10;
/// Bytes in a second that even a slow line takes.
const SLOW: u64 = 100_000;

fn ctr(arguments: &[&str]) -> Vec<String> {
    ["ctr", "-n", "k8s.io"].iter().chain(arguments).map(|a| (*a).to_owned()).collect()
}

async fn run(ctx: &Ctx, node: &Store, argv: &[String]) -> Result<Output> {
    driver_of(ctx, &node.name).run(&node.name, argv).await
}

fn succeeded(node: &Store, output: &Output, what: &str) -> Result<()> {
    if output.code == 0 {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    // ctr logs as it goes; what went wrong is the last line.
    let last = text.trim().lines().last().unwrap_or("it said nothing").trim_start_matches("ctr: ").to_owned();
    bail!("node {}: {what}: {last}", node.name)
}

/// One node asks the registry, the others take it from there.
pub async fn pull(ctx: &Ctx, cluster: &Cluster, stores: &Stores, name: &str) -> Result<()> {
    let (first, others) = stores.first()?;
    let before = first.client.image(name).await?;
    let argv = ctr(&["content", "fetch", "--hosts-dir", HOSTS, name]);
    let fetched = async {
        let output = tokio::select! {
            output = run(ctx, first, &argv) => output?,
            () = silence(first) => {
                bail!("node {}: pull {name}: the registry sends nothing for {} s", first.name, SILENCE.as_secs())
            }
        };
        succeeded(first, &output, &format!("pull {name}"))?;
        containers::unpack(first, name).await
    };
    if let Err(error) = fetched.await {
        // What the name meant before, it means again.
        let restored = match before {
            Some(image) => first.client.name_image(image).await,
            None => first.client.remove_image(name).await.map(drop),
        };
        if let Err(e) = restored {
            tracing::warn!("node {}: {e}", first.name);
        }
        return Err(error);
    }
    let names = [name.to_owned()];
    spread(&names, first, others).await?;
    note(ctx, cluster, stores, first, &names).await
}

/// Ends when nothing has arrived for a while.
async fn silence(node: &Store) {
    let (mut seen, mut since) = (None, Instant::now());
    while since.elapsed() < SILENCE {
        sleep(LOOK).await;
        let now = node.client.arrived().await.ok();
        if now != seen {
            (seen, since) = (now, Instant::now());
        }
    }
}

/// From any node that has it. Whether there was one.
pub async fn push(ctx: &Ctx, stores: &Stores, name: &str) -> Result<bool> {
    let Some(node) = holder(stores, name).await? else { return Ok(false) };
    let limit = time_to_send(containers::size(&node, name).await?);
    let argv = ctr(&["images", "push", "--hosts-dir", HOSTS, name]);
    let Ok(output) = timeout(limit, run(ctx, &node, &argv)).await else {
        bail!("node {}: push {name}: the registry has not taken it within {} s", node.name, limit.as_secs())
    };
    succeeded(&node, &output?, &format!("push {name}"))?;
    Ok(true)
}

/// How much of it has arrived nobody tells: so long a slow line takes for all of it.
fn time_to_send(bytes: u64) -> Duration {
    SILENCE + Duration::from_secs(bytes / SLOW)
}

async fn holder(stores: &Stores, name: &str) -> Result<Option<Store>> {
    for node in &stores.running {
        if node.client.image(name).await?.is_some() {
            return Ok(Some(node.clone()));
        }
    }
    Ok(None)
}

/// Writes an image in the form that `load` and `docker load` read. Whether any node has it.
pub async fn save(ctx: &Ctx, stores: &Stores, name: &str, to: &mut impl std::io::Write) -> Result<bool> {
    let Some(node) = holder(stores, name).await? else { return Ok(false) };
    // By its transfer service ctr may end, with exit code 0, before it has written all that containerd sent.
    let start = Start { argv: ctr(&["images", "export", "--local", "-", name]), ..Start::default() };
    let mut exec = driver_of(ctx, &node.name).node(&node.name).await?.exec(start).await?;
    drop(exec.take_input());
    let mut output = Output::default();
    loop {
        match exec.next().await? {
            ExecEvent::Stdout(data) => to.write_all(&data).context("write the image")?,
            ExecEvent::Stderr(data) if output.stderr.len() < LONGEST_WORDS => {
                output.stderr.extend_from_slice(&data);
            }
            ExecEvent::Stderr(_) => {}
            ExecEvent::Exit(code) => {
                output.code = code;
                break;
            }
        }
    }
    succeeded(&node, &output, &format!("save {name}"))?;
    to.flush().context("write the image")?;
    Ok(true)
}
