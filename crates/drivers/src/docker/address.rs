//! How an engine is reached, as the `docker` command's variables say it.

use std::path::PathBuf;

use bollard::{API_DEFAULT_VERSION, Docker as Client};
use model::{Fault, Reason};
use serde::{Deserialize, Serialize};

use super::engine::absent;

const SOCKET: &str = "unix:///var/run/docker.sock";
const PATIENCE_SECONDS: u64 = 600;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Address {
    pub host: String,
    /// Where `ca.pem`, `cert.pem` and `key.pem` lie; with TLS only.
    pub certs: Option<PathBuf>,
}

impl Address {
    pub fn of_environment() -> Address {
        Address::of(|name| std::env::var(name).ok())
    }

    /// `docker-env` points DOCKER_HOST into a node; the engine of the nodes is the one from before that.
    fn of(var: impl Fn(&str) -> Option<String>) -> Address {
        let var = |name: &str| var(name).filter(|value| !value.is_empty());
        let prefix = if var("MINIKUBE_ACTIVE_DOCKERD").is_some() { "MINIKUBE_EXISTING_" } else { "" };
        let var = |name: &str| var(&format!("{prefix}{name}"));
        let own = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".docker"));
        let certs = var("DOCKER_CERT_PATH").map(PathBuf::from).or_else(own);
        Address {
            host: var("DOCKER_HOST").unwrap_or_else(|| SOCKET.to_owned()),
            certs: var("DOCKER_TLS_VERIFY").and(certs),
        }
    }

    /// A file of this host, whoever answers there.
    pub fn is_socket(&self) -> bool {
        self.host.starts_with("unix://")
    }

    pub fn connect(&self) -> Result<Client, Fault> {
        let host = &self.host;
        let made = match (host.split_once("://").map(|(scheme, _)| scheme), &self.certs) {
            (Some("unix"), _) => Client::connect_with_unix(host, PATIENCE_SECONDS, API_DEFAULT_VERSION),
            (Some("tcp" | "https"), Some(certs)) => {
                let [key, cert, ca] = ["key.pem", "cert.pem", "ca.pem"].map(|name| certs.join(name));
                Client::connect_with_ssl(host, &key, &cert, &ca, PATIENCE_SECONDS, API_DEFAULT_VERSION)
            }
            (Some("tcp" | "http"), None) => {
                Client::connect_with_http(host, PATIENCE_SECONDS, API_DEFAULT_VERSION)
            }
            _ => {
                return Err(Fault::new(
                    Reason::DriverNotHealthy,
                    format!("DOCKER_HOST={host}: engines are reached by unix:// and tcp:// only"),
                )
                .advice("For an engine behind SSH: ssh -NL /tmp/engine.sock:/var/run/docker.sock HOST, and DOCKER_HOST=unix:///tmp/engine.sock"));
            }
        };
        made.map_err(|e| absent(&e.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_of_the_nodes_is_not_one_in_a_node() {
        let of = |pairs: &[(&str, &str)]| {
            let find = |name: &str| pairs.iter().find(|(k, _)| *k == name).map(|(_, v)| (*v).to_owned());
            let address = Address::of(find);
            (address.host, address.certs.map(|c| c.display().to_string()))
        };
        assert_eq!(of(&[]), (SOCKET.to_owned(), None));
        assert_eq!(of(&[("DOCKER_HOST", "unix:///x")]).0, "unix:///x");
        let inside = ("DOCKER_HOST", "tcp://192.168.49.2:2376");
        let tls = [("DOCKER_TLS_VERIFY", "1"), ("DOCKER_CERT_PATH", "/c")];
        let active = ("MINIKUBE_ACTIVE_DOCKERD", "minikube");
        assert_eq!(of(&[inside, tls[0], tls[1]]), (inside.1.to_owned(), Some("/c".to_owned())));
        assert_eq!(of(&[inside, tls[0], tls[1], active]), (SOCKET.to_owned(), None));
        let before = ("MINIKUBE_EXISTING_DOCKER_HOST", "unix:///y");
        assert_eq!(of(&[inside, active, before]).0, "unix:///y");
    }
}
