//! By way of the engine into a cluster's network: through any node that runs.

use std::net::SocketAddrV4;
use std::sync::Mutex;

use anyhow::Result;
use drivers::docker::inside::{Engine, Tunnel};

pub struct Ways {
    engine: Engine,
    /// The home that the machines belong to, as their labels say it.
    home: String,
    profile: String,
    /// Those that run; one that did not serve comes last.
    nodes: Mutex<Vec<String>>,
}

impl Ways {
    pub fn new(engine: Engine, home: String, profile: String) -> Ways {
        Ways { engine, home, profile, nodes: Mutex::default() }
    }

    /// Does any node run?
    pub async fn look(&self) -> Result<bool> {
        let running = self.engine.running(&self.home, &self.profile).await?;
        let any = !running.is_empty();
        if let Ok(mut nodes) = self.nodes.lock() {
            nodes.retain(|node| running.contains(node));
            let new: Vec<String> = running.into_iter().filter(|node| !nodes.contains(node)).collect();
            nodes.extend(new);
        }
        Ok(any)
    }

    /// To the first of the addresses that answers, from the first node that gets there.
    pub async fn connect(&self, to: &[SocketAddrV4]) -> Option<Tunnel> {
        if self.nodes().is_empty() {
            let _ = self.look().await;
        }
        for node in self.nodes() {
            match self.engine.dial(&node, to).await {
                Ok(tunnel) => return Some(tunnel),
                Err(e) => {
                    eprintln!("{e:#}");
                    self.pass_by(&node);
                }
            }
        }
        None
    }

    fn nodes(&self) -> Vec<String> {
        self.nodes.lock().map(|nodes| nodes.clone()).unwrap_or_default()
    }

    fn pass_by(&self, node: &str) {
        if let Ok(mut nodes) = self.nodes.lock()
            && let Some(at) = nodes.iter().position(|n| n == node)
        {
            let node = nodes.remove(at);
            nodes.push(node);
        }
    }
}
