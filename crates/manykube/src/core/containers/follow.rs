//! What a Docker client makes on one node appears on all: a process beside the nodes follows the images of
//! that node, as long as the node runs.
//!
//! It is a process of the host, because only there the nodes' disks are side by side; it ends by itself
//! when the node's first process does.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use containers::{Node as Store, familiar};
use fs_err::os::unix::fs::OpenOptionsExt as _;
use futures::StreamExt as _;
use futures::future::join_all;
use model::Home;
use tokio::time::{sleep, timeout};

use super::{Record, connect, digest, missing};
use crate::background;
use crate::state::profile;

/// The hidden command.
pub const COMMAND: &str = "images-follow";
/// What is made together is passed on together.
const TOGETHER: Duration = Duration::from_millis(50);
/// A node that could not be reached is tried again.
const AGAIN: Duration = Duration::from_secs(2);

/// From now on, and again whenever the node starts.
pub fn begin(home: &Home, profile: &str, machine: &str) -> Result<()> {
    Record::change(home, profile, |record| record.follow = Some(machine.to_owned()))?;
    spawn(home, profile, machine)
}

/// After a start: the node may have been down.
pub fn resume(home: &Home, profile: &str) -> Result<()> {
    match Record::read(home, profile).follow {
        Some(machine) if drivers::machine::root_of(home, &machine).is_some() => {
            spawn(home, profile, &machine)
        }
        _ => Ok(()),
    }
}

/// A second one finds the first at work, and ends.
fn spawn(home: &Home, profile: &str, machine: &str) -> Result<()> {
    let log = fs_err::OpenOptions::new()
        .create(true)
        .append(true)
        .open(home.profile(profile).join("images-follow.log"))?
        .into_parts()
        .0;
    background::spawn(home, COMMAND, &[profile, machine], log)
}

/// `images-follow HOME CACHE PROFILE MACHINE`.
pub fn main(args: &[OsString]) -> ExitCode {
    background::main(args, async |home, [profile, machine]| follow(home, profile, machine).await)
}

async fn follow(home: &Home, profile: &str, machine: &str) -> Result<()> {
    let lock = home.machine(machine).join("images-follow.lock");
    let lock = fs_err::OpenOptions::new().create(true).append(true).mode(0o600).open(lock)?.into_parts().0;
    if lock.try_lock().is_err() {
        return Ok(());
    }
    let ended = drivers::machine::wait_end(home, machine)?;
    tokio::select! {
        done = pass_on(home, profile, machine) => done,
        gone = ended => gone,
    }
}

async fn pass_on(home: &Home, profile: &str, machine: &str) -> Result<()> {
    loop {
        // containerd may be started again while its node runs.
        let Ok(node) = connect(home, machine).await else {
            sleep(AGAIN).await;
            continue;
        };
        // Listens before it looks: nothing falls between the two.
        let Ok(mut events) = node.client.image_events().await else {
            sleep(AGAIN).await;
            continue;
        };
        loop {
            let wait = match mirror(home, profile, &node).await {
                Ok(()) => Duration::MAX,
                Err(e) => {
                    eprintln!("{e:#}");
                    AGAIN
                }
            };
            match timeout(wait, events.next()).await {
                Ok(None | Some(Err(_))) => break,
                Ok(Some(Ok(_))) => sleep(TOGETHER).await,
                Err(_) => {}
            }
            // The rest of what happened meanwhile is seen by one look.
            while let Ok(Some(Ok(_))) = timeout(Duration::ZERO, events.next()).await {}
        }
    }
}

/// Every image of the node is on all nodes that run, and will be on those that come.
async fn mirror(home: &Home, profile: &str, node: &Store) -> Result<()> {
    let images = node.client.images().await?;
    let named: BTreeMap<String, String> = images
        .iter()
        .filter(|i| familiar(&i.name))
        .filter_map(|i| Some((i.name.clone(), digest(i)?.to_owned())))
        .collect();
    let Some(cluster) = profile::load(home, profile)?.map(|f| f.cluster) else {
        bail!("no profile {profile}")
    };
    let peers = cluster.nodes.iter().map(|n| cluster.machine(n));
    let peers = peers.filter(|m| *m != node.name && drivers::machine::root_of(home, m).is_some());
    let failed: Vec<String> = join_all(peers.map(|peer| give(home, node, peer, &named, &images)))
        .await
        .into_iter()
        .filter_map(|done| done.err().map(|e| format!("{e:#}")))
        .collect();
    let own: Vec<String> = super::super::images_of_home(home, &cluster.kubernetes_version)?;
    Record::change(home, profile, |record| {
        // What the node image has, every node has.
        record
            .images
            .extend(named.iter().filter(|(n, _)| !own.contains(n)).map(|(n, d)| (n.clone(), d.clone())));
    })?;
    if failed.is_empty() { Ok(()) } else { bail!("{}", failed.join("; ")) }
}

async fn give(
    home: &Home,
    from: &Store,
    peer: String,
    named: &BTreeMap<String, String>,
    images: &[containers::containerd::messages::Image],
) -> Result<()> {
    let to = connect(home, &peer).await?;
    let lacks: Vec<String> = missing(&to, named).await?.into_iter().map(|(name, _)| name).collect();
    let give: Vec<_> = images.iter().filter(|i| lacks.contains(&i.name)).cloned().collect();
    containers::copy(&give, from, &to).await
}
