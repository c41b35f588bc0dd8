//! Who else is in the cluster, from the document that the host keeps in every node.
//!
//! The parts that need to know (virtual address, routes) only see a channel. Somebody else could
//! fill it, for example a watch of the API's Nodes with a certificate of its own; a file that the
//! host writes is there before any API server answers, is the same on all nodes, and needs nothing.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use model::node_spec::Peers;
use tokio::sync::watch;
use tokio::task::spawn_local;
use tokio::time::sleep;

use crate::mark::mark;

const LOOK: Duration = Duration::from_millis(200);

pub fn follow(path: PathBuf) -> watch::Receiver<Peers> {
    // Looked at before it is read: a change in between is seen as one the next time.
    let mut seen = mark(&path);
    let (sender, receiver) = watch::channel(or_before(read(&path), Peers::default()));
    spawn_local(async move {
        while !sender.is_closed() {
            sleep(LOOK).await;
            let now = mark(&path);
            // One that has vanished says nothing.
            if now == seen || now.is_none() {
                continue;
            }
            seen = now;
            let before = sender.borrow().clone();
            let peers = or_before(read(&path), before);
            sender.send_if_modified(|known| std::mem::replace(known, peers.clone()) != peers);
        }
    });
    receiver
}

fn read(path: &Path) -> Result<Option<Peers>> {
    if !path.exists() {
        return Ok(None);
    }
    let text = fs_err::read(path)?;
    serde_json::from_slice(&text).map(Some).with_context(|| format!("understand {}", path.display()))
}

/// A document that cannot be read is no reason to forget what the last one said.
fn or_before(read: Result<Option<Peers>>, before: Peers) -> Peers {
    match read {
        Ok(Some(peers)) => peers,
        Ok(None) => before,
        Err(e) => {
            tracing::error!("{e:#}");
            before
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_without_an_election_is_one() {
        let peers: Peers = serde_json::from_str(r#"{"nodes":["192.168.49.2"]}"#).unwrap();
        assert_eq!((peers.nodes.len(), peers.election), (1, None));
        let text = r#"{"control_planes":["192.168.49.2"],"nodes":[],
                       "election":{"vip":"192.168.49.254","api_port":8443}}"#;
        let election = serde_json::from_str::<Peers>(text).unwrap().election.unwrap();
        assert_eq!((election.api_port, election.port), (8443, 10112));
    }

    #[test]
    fn damage_changes_nothing() {
        let before = Peers { nodes: vec!["192.168.49.2".parse().unwrap()], ..Peers::default() };
        let damaged = serde_json::from_str::<Option<Peers>>("{").map_err(Into::into);
        assert_eq!(or_before(damaged, before.clone()), before);
        assert_eq!(or_before(Ok(None), before.clone()), before);
    }
}
