//! The certificates of the nodes' Docker engines: an authority of their own, because whoever may speak to
//! an engine is root in its node, and the cluster's authority signs for others too. In `certs` of the home,
//! where docker's client finds its part under the names that it knows.

use std::path::Path;
use std::time::SystemTime;

use anyhow::{Context, Result, bail};
use model::{Cluster, Home, Node};

use super::issue::{self, Pair};
use super::leaf::{self, Leaf, Signer};
use super::store;
use super::{check, sans};

const HOURS: u32 = 26280;
/// Who signs is said to each call; the field is for the table of a cluster.
const ANY: Signer = Signer::Cluster;

/// What an engine proves itself with, and whom it lets in.
pub struct Engine {
    pub ca: String,
    pub server: Pair,
}

/// Makes what is missing: the authority, the client's certificate, and that of this node's engine.
pub fn ensure(home: &Home, cluster: &Cluster, node: &Node, now: SystemTime) -> Result<Engine> {
    let _lock = store::lock(&home.root().join("locks/pki.lock"))?;
    let dir = home.certs();
    let ca = authority(&dir, now)?;
    let client = leaf::client("client", ANY, "manykube", None);
    let paths = [dir.join("cert.pem"), dir.join("key.pem")];
    pair(&client, &ca, &paths, now)?;
    let machine = cluster.machine(node);
    let server = leaf::server("docker", ANY, &machine, sans::on_node(cluster, node));
    let base = home.profile(&cluster.name).join(leaf::of_machine(&machine, "docker"));
    let server = pair(&server, &ca, &[base.with_extension("crt"), base.with_extension("key")], now)?;
    Ok(Engine { ca: ca.cert, server })
}

fn authority(dir: &Path, now: SystemTime) -> Result<Pair> {
    let files = [dir.join("ca.pem"), dir.join("ca-key.pem")];
    store::finish_authority(&files)?;
    let [cert, key] = &files;
    match (store::read(cert)?, store::read(key)?) {
        (Some(cert), Some(key)) => Ok(Pair { cert, key }),
        (None, None) => {
            let pair = issue::authority("manykube docker", now)?;
            store::write_authority(&files, &pair)?;
            Ok(pair)
        }
        _ => bail!("one of {} and {} is missing: put it back, or remove both", cert.display(), key.display()),
    }
}

fn pair(spec: &Leaf, ca: &Pair, files: &[std::path::PathBuf; 2], now: SystemTime) -> Result<Pair> {
    let [cert, key] = files;
    if let (Some(cert), Some(key)) = (store::read(cert)?, store::read(key)?) {
        let there = Pair { cert, key };
        if check::leaf(spec, &there, ca, now).is_none() {
            return Ok(there);
        }
    }
    let made = issue::leaf(spec, ca, HOURS, now).context("for the Docker engine")?;
    store::write_leaf(files, &made)?;
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn made_once_and_for_each_node() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path(), None);
        let cluster = fixture::cluster(1, 1);
        let now = SystemTime::now();
        let first = ensure(&home, &cluster, &cluster.nodes[0], now).unwrap();
        let again = ensure(&home, &cluster, &cluster.nodes[0], now).unwrap();
        assert!(first.server == again.server && first.ca == again.ca);
        let other = ensure(&home, &cluster, &cluster.nodes[1], now).unwrap();
        assert!(other.server != first.server && other.ca == first.ca);
        for name in ["ca.pem", "ca-key.pem", "cert.pem", "key.pem"] {
            assert!(home.certs().join(name).is_file(), "{name}");
        }
        std::fs::remove_file(home.certs().join("ca-key.pem")).unwrap();
        assert!(ensure(&home, &cluster, &cluster.nodes[0], now).is_err());
    }
}
