//! Images that come from registries and go there, and to files, through a node's own containerd.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use containers::Node as Store;
use drivers::{Io, Output};
use model::Cluster;
use tokio::time::{sleep, timeout};

use super::{Stores, note, spread};
use crate::core::driver_of;
use crate::ctx::Ctx;

/// Where the node is told about registries.
const HOSTS: &str = "/etc/containerd/certs.d";
/// A registry that sends nothing for so long is not going to.
const SILENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(500);
/// Bytes in a second that even a slow line takes.
const SLOW: u64 = 100_000;

fn ctr(arguments: &[&str]) -> Vec<String> {
    ["ctr", "-n", "k8s.io"].iter().chain(arguments).map(|a| (*a).to_owned()).collect()
}

async fn run(ctx: &Ctx, node: &Store, argv: &[String]) -> Result<Output> {
    driver_of(ctx, &node.name).run(&node.name, argv, Io::Captured { stdin: Vec::new() }).await
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

/// Writes an image to a file that `load` and `docker load` read; the file, which is the caller's to remove.
/// `None` when no node has it.
pub async fn save(ctx: &Ctx, stores: &Stores, name: &str) -> Result<Option<Saved>> {
    let Some(node) = holder(stores, name).await? else { return Ok(None) };
    let file = format!("manykube-{}.tar", uuid::Uuid::new_v4());
    let saved = Saved(drivers::machine::var_dir(&ctx.home, &node.name).join("tmp").join(&file));
    // By its transfer service ctr may end, with exit code 0, before it has written all that containerd sent.
    let argv = ctr(&["images", "export", "--local", &format!("/var/tmp/{file}"), name]);
    let output = run(ctx, &node, &argv).await?;
    succeeded(&node, &output, &format!("save {name}"))?;
    Ok(Some(saved))
}

/// A file in a node, as the host sees it.
pub struct Saved(PathBuf);

impl Saved {
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Puts it where it is wanted: whole, or not at all.
    pub fn move_to(&self, target: &Path) -> Result<()> {
        let dir = target.parent().filter(|d| !d.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut new =
            tempfile::NamedTempFile::new_in(dir).with_context(|| format!("write to {}", dir.display()))?;
        std::io::copy(&mut fs_err::File::open(&self.0)?, &mut new)
            .with_context(|| format!("write {}", target.display()))?;
        std::fs::set_permissions(new.path(), std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
        new.persist(target).with_context(|| format!("write {}", target.display()))?;
        Ok(())
    }
}

impl Drop for Saved {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
