//! Who else is in the cluster, from the document that the host keeps in every node.
//!
//! The parts that need to know (virtual address, routes) only see a channel. Somebody else could
//! fill it, for example a watch of the API's Nodes with a certificate of its own; a file that the
//! host writes is there before any API server answers, is the same on all nodes, and needs nothing.

use std::path::PathBuf;

use model::node_spec::Peers;
use tokio::sync::watch;

pub fn follow(path: PathBuf) -> watch::Receiver<Peers> {
    crate::document::follow(path, Peers::default())
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
}
