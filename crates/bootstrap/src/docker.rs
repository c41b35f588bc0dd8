//! The Docker engine of a node: its configuration, its certificates, its command.

use std::net::Ipv4Addr;

use anyhow::Result;
use model::node_spec::{DOCKER_PATH, Docker, NodeFile};
use serde_json::json;

use crate::pki::docker::Engine;

/// As every Docker client expects it.
pub const PORT: u16 = 2376;
/// In the node.
pub const SOCKET: &str = "run/docker.sock";
pub const PROGRAM: &str = "usr/local/bin/dockerd";

const DIR: &str = "/etc/docker";

/// All that goes into a node so that its engine runs; the last one is what starts it.
pub fn files(address: Ipv4Addr, engine: &Engine) -> Result<Vec<NodeFile>> {
    let configuration = json!({
        "features": { "containerd-snapshotter": true },
        // Containers of Docker's own outlive a restart of the engine.
        "live-restore": true,
        "ip6tables": false,
    });
    let document = Docker { argv: command(address) };
    Ok(vec![
        NodeFile::new(format!("{DIR}/daemon.json"), 0o644, serde_json::to_vec_pretty(&configuration)?),
        NodeFile::new(format!("{DIR}/ca.pem"), 0o644, engine.ca.clone()),
        NodeFile::new(format!("{DIR}/server.pem"), 0o644, engine.server.cert.clone()),
        NodeFile::new(format!("{DIR}/server-key.pem"), 0o600, engine.server.key.clone()),
        NodeFile::new(DOCKER_PATH, 0o600, serde_json::to_vec_pretty(&document)?),
    ])
}

/// On the node's own containerd, in the namespace of Kubernetes: an image is at once one that pods can use.
fn command(address: Ipv4Addr) -> Vec<String> {
    let tcp = format!("tcp://{address}:{PORT}");
    let fixed = [
        "dockerd",
        "--containerd=/run/containerd/containerd.sock",
        "--containerd-namespace=k8s.io",
        "--containerd-plugins-namespace=moby-plugins",
        "--pidfile=/run/docker.pid",
        "--host=unix:///run/docker.sock",
        "--tlsverify",
        "--tlscacert=/etc/docker/ca.pem",
        "--tlscert=/etc/docker/server.pem",
        "--tlskey=/etc/docker/server-key.pem",
        // Every pod that starts is an event that it knows nothing of, and an error in its log.
        "--log-level=fatal",
    ];
    fixed.iter().map(|a| (*a).to_owned()).chain([format!("--host={tcp}")]).collect()
}
