//! What a Docker client makes on one node appears on all: a process beside the nodes follows the images of
//! that node, as long as the node runs.
//!
//! It is a process of the host, because only from there all nodes are reached; it ends by itself when the node's first
//! process does.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use containers::{Node as Store, familiar};
use fs_err::os::unix::fs::OpenOptionsExt as _;
use futures::StreamExt as _;
use futures::future::join_all;
use model::Home;
use tokio::time::{sleep, timeout};

use super::{Record, connect, digest, missing};
use crate::background;
use crate::core::{Machines, driver_of_home};
use crate::state::profile;

/// The hidden command.
pub const COMMAND: &str = "images-follow";
/// What is made together is passed on together.
const TOGETHER: Duration = Duration::from_millis(50);
/// A node that could not be reached is tried again.
const AGAIN: Duration = Duration::from_secs(2);
/// Bytes of the log.
const LARGEST: u64 = 1 << 20;

/// From now on, and again whenever the node starts.
pub fn begin(home: &Home, profile: &str, machine: &str) -> Result<()> {
    Record::change(home, profile, |record| record.follow = Some(machine.to_owned()))?;
    spawn(home, profile, machine)
}

/// After a start: the node may have been down.
pub fn resume(home: &Home, profile: &str) -> Result<()> {
    match Record::read(home, profile).follow {
        Some(machine) if drivers::machine::init_of(home, &machine).is_some() => {
            spawn(home, profile, &machine)
        }
        _ => Ok(()),
    }
}

/// A second one finds the first at work, and ends.
fn spawn(home: &Home, profile: &str, machine: &str) -> Result<()> {
    let log = log(&home.profile(profile).join("images-follow.log"))?;
    background::spawn(home, COMMAND, &[profile, machine], log)
}

/// One that is large is kept beside a new one.
fn log(path: &Path) -> Result<std::fs::File> {
    if std::fs::metadata(path).is_ok_and(|file| file.len() > LARGEST) {
        fs_err::rename(path, path.with_extension("log.1"))?;
    }
    Ok(fs_err::OpenOptions::new().create(true).append(true).open(path)?.into_parts().0)
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
    let mut told = Told::default();
    let driver = driver_of_home(home, machine);
    loop {
        // containerd may be started again while its node runs.
        let Ok(node) = connect(&driver, machine).await else {
            sleep(AGAIN).await;
            continue;
        };
        // Listens before it looks: nothing falls between the two.
        let Ok(mut events) = node.client.image_events().await else {
            sleep(AGAIN).await;
            continue;
        };
        loop {
            let done = mirror(home, profile, &driver, &node).await;
            if let Some(line) = told.news(&done) {
                eprintln!("{line}");
            }
            let wait = if done.is_ok() { Duration::MAX } else { AGAIN };
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

/// What was said last: a node that is frozen for an hour is worth one line.
#[derive(Default)]
struct Told(String);

impl Told {
    fn news(&mut self, done: &Result<()>) -> Option<String> {
        let now = done.as_ref().err().map(|e| format!("{e:#}")).unwrap_or_default();
        let before = std::mem::replace(&mut self.0, now);
        (self.0 != before)
            .then(|| if self.0.is_empty() { "all is passed on again".into() } else { self.0.clone() })
    }
}

/// Every image of the node is on all nodes that run, and will be on those that come.
async fn mirror(home: &Home, profile: &str, driver: &Machines, node: &Store) -> Result<()> {
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
    let peers = peers.filter(|m| *m != node.name && drivers::machine::init_of(home, m).is_some());
    let failed: Vec<String> = join_all(peers.map(|peer| give(driver, node, peer, &named, &images)))
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
    driver: &Machines,
    from: &Store,
    peer: String,
    named: &BTreeMap<String, String>,
    images: &[containers::containerd::messages::Image],
) -> Result<()> {
    let to = connect(driver, &peer).await?;
    let lacks: Vec<String> = missing(&to, named).await?.into_iter().map(|(name, _)| name).collect();
    let give: Vec<_> = images.iter().filter(|i| lacks.contains(&i.name)).cloned().collect();
    containers::copy(&give, from, &to).await.with_context(|| format!("node {peer}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_for_each_change() {
        let mut told = Told::default();
        let frozen = || Err(anyhow::anyhow!("minikube-m02 does not answer"));
        assert_eq!(told.news(&Ok(())), None);
        assert_eq!(told.news(&frozen()).as_deref(), Some("minikube-m02 does not answer"));
        assert_eq!(told.news(&frozen()), None);
        assert_eq!(told.news(&Ok(())).as_deref(), Some("all is passed on again"));
        assert_eq!(told.news(&Ok(())), None);
        assert!(told.news(&frozen()).is_some());
    }

    #[test]
    fn a_large_log_is_followed_by_another() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("images-follow.log");
        log(&path).unwrap().set_len(LARGEST + 1).unwrap();
        assert_eq!(log(&path).unwrap().metadata().unwrap().len(), 0);
        assert!(dir.path().join("images-follow.log.1").exists());
    }
}
