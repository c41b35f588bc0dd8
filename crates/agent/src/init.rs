//! The life of a node, top to bottom.

use std::net::SocketAddrV4;
use std::path::Path;
use std::process::ExitCode;
use std::rc::Rc;

use anyhow::{Context, Result};
use model::node_spec::{
    API_SERVER_POD, ELECTION_PATH, ElectionKey, NodeSpec, PEERS_PATH, SPEC_PATH, STATIC_POD_DIR,
};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::{LocalSet, spawn_local};

use crate::reaper::Reaper;
use crate::service::{self, Service};
use crate::state::Node;
use crate::vip::{self, Place};
use crate::{
    boot_id, capacity, cni, docker, document, files, hold, load_balancer, log, network, peers, poweroff,
    prepare, resize, routes, serve, socket, ssh, store, sysctl,
};

pub fn run() -> ExitCode {
    log::init();
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(e) => {
            tracing::error!("no runtime: {e}");
            return ExitCode::FAILURE;
        }
    };
    match LocalSet::new().block_on(&runtime, live()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            tracing::error!("{e:#}");
            ExitCode::FAILURE
        }
    }
}

async fn live() -> Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("listen for SIGTERM")?;
    let reaper = Reaper::start()?;
    let text = fs_err::read(SPEC_PATH)?;
    let spec: NodeSpec = serde_json::from_slice(&text).with_context(|| format!("read {SPEC_PATH}"))?;
    let node = Rc::new(Node::new(spec));
    socket::serve(node.clone())?;
    serve::listen(reaper.clone())?;
    spawn_local(log::rotate());
    spawn_local(hold::follow(node.clone()));

    // From here on a failure is told, not fatal: a node that explains itself beats a dead one.
    let booting = spawn_local(boot(node.clone(), reaper.clone()));
    terminate.recv().await;
    tracing::info!("power off");
    booting.abort();
    poweroff::run(&node).await;
    Ok(())
}

async fn boot(node: Rc<Node>, reaper: Reaper) {
    if let Err(e) = bring_up(&node, &reaper).await {
        tracing::error!("{e:#}");
        node.state.borrow_mut().problem = Some(format!("{e:#}"));
    }
}

async fn bring_up(node: &Rc<Node>, reaper: &Reaper) -> Result<()> {
    files::write(&node.spec)?;
    sysctl::apply();
    node.state.borrow_mut().boot_id = boot_id::make()?;
    let capacity = capacity::show(node.spec.memory_mib)?;
    spawn_local(resize::follow(node.clone(), capacity));
    cni::write(&node.spec.network)?;
    // Before kubeadm writes what may be taken away again.
    let early = early_api(&node.spec);
    store::fill()?;
    let containerd = Service::start(node, reaper, service::containerd());
    // The network, containerd and kubeadm's files do not need each other.
    tokio::try_join!(
        connect(node, reaper, early),
        prepare::run(node, reaper),
        service::containerd_answers()
    )?;
    spawn_local(docker::follow(node.clone(), reaper.clone()));
    let kubelet = Service::start(node, reaper, service::kubelet(&node.spec.kubelet));
    spawn_local(ssh::serve(node.clone(), reaper.clone()));
    containerd.forever().await;
    kubelet.forever().await;
    Ok(())
}

/// Who answers this node's kubelet, as long as its own API server has not been let go.
fn early_api(spec: &NodeSpec) -> Option<SocketAddrV4> {
    spec.early_api.filter(|_| !Path::new(STATIC_POD_DIR).join(API_SERVER_POD).exists())
}

/// The node's own network, then what it shares with other nodes; that follows their coming and
/// going from here on.
async fn connect(node: &Rc<Node>, reaper: &Reaper, early: Option<SocketAddrV4>) -> Result<()> {
    let peers = peers::follow(PEERS_PATH.into());
    let elected = peers.borrow().election.is_some();
    network::up(node, reaper, elected, early).await?;
    let place = Place {
        node: node.clone(),
        reaper: reaper.clone(),
        link: network::LINK.to_owned(),
        peers: peers.clone(),
        key: document::follow(ELECTION_PATH.into(), ElectionKey::default()),
    };
    node.parts.spawn_local(vip::run(place, elected));
    node.parts.spawn_local(load_balancer::run(node.clone(), network::LINK.to_owned(), peers.clone()));
    spawn_local(routes::keep(node.clone(), network::LINK.to_owned(), peers));
    Ok(())
}
