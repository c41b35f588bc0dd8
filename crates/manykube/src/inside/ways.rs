//! By way of the engine into a cluster's network: through the channel of any node that runs.

use std::collections::HashMap;
use std::net::SocketAddrV4;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use drivers::docker::inside::Engine;
use protocol::{Connection, Node};
use tokio::time::timeout;

/// The node's own attempts, and what the engine takes to begin.
const DIAL: Duration = Duration::from_secs(20);

pub struct Ways {
    engine: Engine,
    /// The home that the machines belong to, as their labels say it.
    home: String,
    profile: String,
    /// Those that run; one that did not serve comes last.
    nodes: Mutex<Vec<String>>,
    /// Channels into nodes, kept for the next connection.
    open: Mutex<HashMap<String, Node>>,
}

impl Ways {
    pub fn new(engine: Engine, home: String, profile: String) -> Ways {
        Ways { engine, home, profile, nodes: Mutex::default(), open: Mutex::default() }
    }

    /// Does any node run?
    pub async fn look(&self) -> Result<bool> {
        let running = self.engine.running(&self.home, &self.profile).await?;
        let any = !running.is_empty();
        let mut nodes = lock(&self.nodes);
        nodes.retain(|node| running.contains(node));
        let new: Vec<String> = running.into_iter().filter(|node| !nodes.contains(node)).collect();
        nodes.extend(new);
        Ok(any)
    }

    /// To the first of the addresses that answers, from the first node that gets there.
    pub async fn connect(&self, to: &[SocketAddrV4]) -> Option<Connection> {
        let targets: Vec<String> = to.iter().map(|address| format!("tcp:{address}")).collect();
        if lock(&self.nodes).is_empty() {
            let _ = self.look().await;
        }
        let nodes = lock(&self.nodes).clone();
        for node in nodes {
            match timeout(DIAL, self.dial(&node, &targets)).await.context("it does not answer").flatten() {
                Ok(connection) => return Some(connection),
                Err(e) => {
                    eprintln!("{node}: {e:#}");
                    self.pass_by(&node);
                }
            }
        }
        None
    }

    async fn dial(&self, node: &str, targets: &[String]) -> Result<Connection> {
        let known = lock(&self.open).get(node).cloned().filter(Node::is_open);
        let channel = match known {
            Some(channel) => channel,
            None => {
                let channel = Node::open(node, self.engine.connect(node).await?).await?;
                lock(&self.open).insert(node.to_owned(), channel.clone());
                channel
            }
        };
        Ok(channel.dial(targets).await?)
    }

    fn pass_by(&self, node: &str) {
        lock(&self.open).remove(node);
        let mut nodes = lock(&self.nodes);
        if let Some(at) = nodes.iter().position(|n| n == node) {
            let node = nodes.remove(at);
            nodes.push(node);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
