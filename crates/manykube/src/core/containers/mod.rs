//! Container images on the nodes of a cluster: every running node has the same ones.

mod fetch;
pub mod follow;
mod record;
mod source;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use containers::archive::Archive;
use containers::containerd::messages::Image;
use containers::{Listed, Node as Store, familiar};
use drivers::MachineState;
use futures::future::{join_all, try_join_all};
use model::{Cluster, Home, Node};

use super::channel::Machines;
use super::look;
use crate::ctx::Ctx;

pub use fetch::{pull, push, save};
pub use record::Record;
pub use source::{Source, engine, image_name, open};

const SOCKET: &str = "unix:/run/containerd/containerd.sock";

/// The stores of nodes that run, the primary's first.
pub struct Stores {
    pub running: Vec<Store>,
    /// Machines that do not run, and have to be told later.
    pub down: Vec<String>,
    /// Those of the whole cluster: what is put there is for nodes that come later, too.
    all: bool,
}

/// Of the named nodes, or of all.
pub async fn stores(ctx: &Ctx, cluster: &Cluster, nodes: &[&Node]) -> Result<Stores> {
    let machines =
        look::machines_of(&cluster.name, Some(cluster), &super::driver(ctx, cluster.driver)).await?;
    let all: Vec<String> = if nodes.is_empty() {
        cluster.nodes.iter().map(|n| cluster.machine(n)).collect()
    } else {
        nodes.iter().map(|n| cluster.machine(n)).collect()
    };
    let (up, down): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|m| machines.get(m) == Some(&MachineState::Running));
    let driver = super::driver(ctx, cluster.driver);
    let running = try_join_all(up.iter().map(|m| connect(&driver, m))).await?;
    Ok(Stores { running, down, all: nodes.is_empty() })
}

pub async fn connect(driver: &Machines, machine: &str) -> Result<Store> {
    let node = driver.node(machine).await?;
    let dial = move || {
        let node = node.clone();
        async move { node.dial(&[SOCKET.to_owned()]).await.map_err(std::io::Error::other) }
    };
    Store::connect(machine, dial).await
}

impl Stores {
    fn first(&self) -> Result<(&Store, &[Store])> {
        self.running.split_first().context("no node runs")
    }
}

/// Reads the archive once, and sends it to all nodes at the same time.
pub async fn load(ctx: &Ctx, cluster: &Cluster, stores: &Stores, archive: &Archive) -> Result<()> {
    let (first, _) = stores.first()?;
    on_all(&stores.running, |node| containers::put(archive, node)).await?;
    let names: Vec<String> = archive.names().cloned().collect();
    note(ctx, cluster, stores, first, &names).await
}

/// What was built on one node, on all.
pub async fn built(ctx: &Ctx, cluster: &Cluster, stores: &Stores, on: &str, name: &str) -> Result<()> {
    let (builder, others): (Vec<Store>, Vec<Store>) =
        stores.running.iter().cloned().partition(|s| s.name == on);
    let builder = builder.first().with_context(|| format!("node {on} does not run"))?;
    let names = [name.to_owned()];
    spread(&names, builder, &others).await?;
    note(ctx, cluster, stores, builder, &names).await
}

/// What the cluster file names, which is what `image load` takes.
pub async fn load_named(ctx: &Ctx, cluster: &Cluster) -> Result<()> {
    let done = Record::read(&ctx.home, &cluster.name).sources;
    let stores = stores(ctx, cluster, &[]).await?;
    for named in cluster.extras.images.iter().filter(|i| !done.contains(*i)) {
        let source = Source::of(named)?;
        match (open(&source).await?, &source) {
            (Some(archive), _) => load(ctx, cluster, &stores, &archive).await?,
            (None, Source::Named(name)) => pull(ctx, cluster, &stores, name).await?,
            (None, _) => {}
        }
        Record::change(&ctx.home, &cluster.name, |record| record.sources.extend([named.clone()]))?;
    }
    Ok(())
}

/// Gives images of one node to others.
pub async fn spread(names: &[String], from: &Store, to: &[Store]) -> Result<()> {
    let mut images = Vec::new();
    for name in names {
        let image = from.client.image(name).await?;
        images.push(image.with_context(|| format!("node {} has no image {name}", from.name))?);
    }
    on_all(to, |node| containers::copy(&images, from, node)).await
}

/// The same on all nodes at once. All that fails is told, and what is the same on several nodes once.
async fn on_all<'a, F>(nodes: &'a [Store], work: impl Fn(&'a Store) -> F) -> Result<()>
where
    F: Future<Output = Result<()>>,
{
    let mut failed: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (node, done) in nodes.iter().zip(join_all(nodes.iter().map(work)).await) {
        if let Err(e) = done {
            failed.entry(format!("{e:#}")).or_default().push(&node.name);
        }
    }
    let told = |(why, nodes): (&String, &Vec<&str>)| match nodes.as_slice() {
        [node] => format!("node {node}: {why}"),
        nodes => format!("nodes {}: {why}", nodes.join(", ")),
    };
    if failed.is_empty() {
        Ok(())
    } else {
        bail!("{}", failed.iter().map(told).collect::<Vec<_>>().join("; "))
    }
}

/// From now on every node that comes gets these.
async fn note(ctx: &Ctx, cluster: &Cluster, stores: &Stores, node: &Store, names: &[String]) -> Result<()> {
    if !stores.all {
        return Ok(());
    }
    let mut found = BTreeMap::new();
    for name in names {
        if let Some(target) = node.client.image(name).await?.and_then(|i| i.target) {
            found.insert(name.clone(), target.digest);
        }
    }
    Record::change(&ctx.home, &cluster.name, |record| record.images.extend(found))
}

/// All images, with those of all nodes under one entry.
pub async fn list(stores: &Stores) -> Result<Vec<Listed>> {
    let mut union: BTreeMap<String, Listed> = BTreeMap::new();
    for found in try_join_all(stores.running.iter().map(containers::list)).await? {
        for (id, listed) in found {
            let entry = union.entry(id).or_insert_with(|| Listed { repo_tags: vec![], ..listed.clone() });
            let tags: BTreeSet<String> = entry.repo_tags.drain(..).chain(listed.repo_tags).collect();
            entry.repo_tags = tags.into_iter().collect();
        }
    }
    Ok(union.into_values().collect())
}

/// A second name for an image, on every node that has it. Whether any has.
pub async fn tag(ctx: &Ctx, cluster: &Cluster, stores: &Stores, from: &str, to: &str) -> Result<bool> {
    let one = |node: Store| async move {
        let Some(image) = node.client.image(from).await? else { return Ok(false) };
        let image = Image { name: to.to_owned(), ..image };
        node.client.name_image(image).await.with_context(|| format!("node {}", node.name))?;
        anyhow::Ok(true)
    };
    let done = try_join_all(stores.running.iter().cloned().map(one)).await?;
    let Some(first) = done.iter().position(|found| *found) else { return Ok(false) };
    note(ctx, cluster, stores, &stores.running[first], &[to.to_owned()]).await?;
    Ok(true)
}

/// Takes names from all nodes. Whether any had it.
pub async fn remove(ctx: &Ctx, cluster: &Cluster, stores: &Stores, name: &str) -> Result<bool> {
    // Forgotten first: a node that comes in between must not get it again.
    Record::change(&ctx.home, &cluster.name, |record| drop(record.images.remove(name)))?;
    let one = |node: &Store| {
        let node = node.clone();
        async move { forget(&node, name).await.with_context(|| format!("node {}", node.name)) }
    };
    Ok(try_join_all(stores.running.iter().map(one)).await?.contains(&true))
}

async fn forget(node: &Store, name: &str) -> Result<bool> {
    let Some(image) = node.client.image(name).await? else { return Ok(false) };
    node.client.remove_image(name).await?;
    // containerd's own alias would keep the content.
    let left = node.client.images().await?;
    let same: Vec<&Image> = left.iter().filter(|i| digest(i) == digest(&image)).collect();
    if !same.iter().any(|i| familiar(&i.name)) {
        for alias in same {
            node.client.remove_image(&alias.name).await?;
        }
    }
    Ok(true)
}

fn digest(image: &Image) -> Option<&str> {
    image.target.as_ref().map(|t| t.digest.as_str())
}

/// Does this node have all that was loaded into the cluster?
pub async fn is_complete(home: &Home, profile: &str, driver: &Machines, machine: &str) -> bool {
    let wanted = Record::read(home, profile).images;
    if wanted.is_empty() {
        return true;
    }
    let Ok(node) = connect(driver, machine).await else { return false };
    missing(&node, &wanted).await.is_ok_and(|m| m.is_empty())
}

async fn missing(node: &Store, wanted: &BTreeMap<String, String>) -> Result<Vec<(String, String)>> {
    let there: BTreeMap<String, String> = node
        .client
        .images()
        .await?
        .iter()
        .filter_map(|i| Some((i.name.clone(), digest(i)?.to_owned())))
        .collect();
    let lacks = |(name, digest): &(&String, &String)| there.get(*name) != Some(*digest);
    Ok(wanted.iter().filter(lacks).map(|(n, d)| (n.clone(), d.clone())).collect())
}

/// Puts what was loaded into the cluster on a node that was not there, from any node that has it.
pub async fn complete(home: &Home, cluster: &Cluster, driver: &Machines, machine: &str) -> Result<()> {
    let wanted = Record::read(home, &cluster.name).images;
    let node = connect(driver, machine).await?;
    let mut missing = missing(&node, &wanted).await?;
    let machines = look::machines_of(&cluster.name, Some(cluster), driver).await?;
    for (peer, _) in machines.iter().filter(|(m, state)| *m != machine && **state == MachineState::Running) {
        if missing.is_empty() {
            break;
        }
        // One that does not answer cannot help.
        let Ok(peer) = connect(driver, peer).await else { continue };
        let mut left = Vec::new();
        for (name, wanted) in missing {
            let found = peer.client.image(&name).await.ok().flatten();
            let Some(image) = found.filter(|i| digest(i) == Some(&wanted)) else {
                left.push((name, wanted));
                continue;
            };
            match containers::copy_one(&image, &peer, &node).await {
                // Another node may have the whole image.
                Err(e) if e.is::<containers::Lacks>() => {
                    tracing::warn!("{e}");
                    left.push((name, wanted));
                }
                done => done.with_context(|| format!("node {machine}"))?,
            }
        }
        missing = left;
    }
    for (name, _) in missing {
        tracing::warn!("no node has the whole image {name} any more");
    }
    Ok(())
}
