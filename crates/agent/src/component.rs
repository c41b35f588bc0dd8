//! The parts that nodes share with each other (virtual address, routes) in a process of its own, for
//! tests in network namespaces: no machine, no Kubernetes.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result};
use model::node_spec::{ElectionKey, NodeSpec};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::{LocalSet, spawn_local};
use tokio::time::sleep;

use crate::reaper::Reaper;
use crate::state::Node;
use crate::vip::{self, Place};
use crate::{document, log, network, peers, routes, sysctl};

pub use crate::vip::probe::Probe;

/// Runs until SIGTERM. The directory has `node.json`, `peers.json` and `election.json`; `state.json` is
/// written there. A file `stall` with a number lets the agent's thread stand still for so many seconds,
/// as the kernel's locks do.
/// Changes the network namespace it is in: give it one of its own.
pub fn run(dir: &Path) -> Result<()> {
    log::init();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, live(dir.to_owned()))
}

async fn live(dir: PathBuf) -> Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("listen for SIGTERM")?;
    let reaper = Reaper::start()?;
    let spec: NodeSpec = serde_json::from_slice(&fs_err::read(dir.join("node.json"))?)?;
    let node = Rc::new(Node::new(spec));
    sysctl::apply();
    let peers = peers::follow(dir.join("peers.json"));
    let elected = peers.borrow().election.is_some();
    network::up(&node, &reaper, elected, None).await?;
    let place = Place {
        node: node.clone(),
        reaper,
        link: network::LINK.to_owned(),
        peers: peers.clone(),
        key: document::follow(dir.join("election.json"), ElectionKey::default()),
    };
    node.parts.spawn_local(vip::run(place, elected));
    spawn_local(routes::keep(node.clone(), network::LINK.to_owned(), peers));
    spawn_local(tell(node.clone(), dir));
    terminate.recv().await;
    node.stop.cancel();
    node.parts.close();
    node.parts.wait().await;
    Ok(())
}

async fn tell(node: Rc<Node>, dir: PathBuf) {
    loop {
        let (new, there) = (dir.join("state.new"), dir.join("state.json"));
        if let Ok(text) = serde_json::to_vec(&node.document()) {
            let _ = std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, &there));
        }
        if let Ok(seconds) = std::fs::read_to_string(dir.join("stall")) {
            let _ = std::fs::remove_file(dir.join("stall"));
            std::thread::sleep(Duration::from_secs(seconds.parse().unwrap_or(0)));
        }
        sleep(Duration::from_millis(20)).await;
    }
}
