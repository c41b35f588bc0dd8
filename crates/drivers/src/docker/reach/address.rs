//! How an engine is reached, as the `docker` command's variables and contexts say it.

use std::path::{Path, PathBuf};

use bollard::errors::Error;
use bollard::{API_DEFAULT_VERSION, Docker as Client};
use model::{Fault, Reason};
use serde::{Deserialize, Serialize};

use super::{context, ssh::Target, ssh_refused, tcp, tls};
use crate::docker::ENGINE;
use crate::docker::engine::{absent, ready};

const SOCKET: &str = "/var/run/docker.sock";
pub const PATIENCE_SECONDS: u64 = 600;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Address {
    pub host: String,
    /// Where `ca.pem`, `cert.pem` and `key.pem` lie; with TLS only.
    pub certs: Option<PathBuf>,
}

fn unix(socket: &Path) -> String {
    format!("unix://{}", socket.display())
}

impl Address {
    pub fn of_environment() -> Address {
        // Root is not who means a user's own, also with that user's variables.
        let root = rustix::process::geteuid().is_root();
        let usable = |path: &Path| {
            !(root && path != Path::new(SOCKET))
                && rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok()
        };
        Address::of(|name| std::env::var(name).ok(), usable)
    }

    /// `docker-env` points DOCKER_HOST into a node; the engine of the nodes is the one from before that.
    fn of(var: impl Fn(&str) -> Option<String>, usable: impl Fn(&Path) -> bool) -> Address {
        let var = |name: &str| var(name).filter(|value| !value.is_empty());
        let at = |host: String| Address { host, certs: None };
        if let Some(host) = var(ENGINE) {
            return at(host);
        }
        let own = || var("HOME").map(|home| PathBuf::from(home).join(".docker"));
        let docker = var("DOCKER_CONFIG").map(PathBuf::from).or_else(own).unwrap_or_default();
        let prefix = if var("MINIKUBE_ACTIVE_DOCKERD").is_some() { "MINIKUBE_EXISTING_" } else { "" };
        let before = |name: &str| var(&format!("{prefix}{name}"));
        let Some(host) = before("DOCKER_HOST") else {
            // A user who has an engine of his own, and may not use the host's, means that one.
            let users = || {
                let socket = PathBuf::from(var("XDG_RUNTIME_DIR")?).join("docker.sock");
                (!usable(Path::new(SOCKET)) && usable(&socket)).then(|| at(unix(&socket)))
            };
            return context::address(var("DOCKER_CONTEXT"), &docker)
                .or_else(users)
                .unwrap_or_else(|| at(unix(Path::new(SOCKET))));
        };
        let certs = before("DOCKER_CERT_PATH").map_or(docker, PathBuf::from);
        // Kept for processes that are elsewhere.
        let certs = before("DOCKER_TLS_VERIFY").map(|_| std::path::absolute(&certs).unwrap_or(certs));
        Address { host, certs }
    }

    /// A file of this host, whoever answers there.
    pub fn is_socket(&self) -> bool {
        self.host.starts_with("unix://")
    }

    /// A client of the engine, which has answered.
    pub async fn connect(&self) -> Result<Client, Fault> {
        let host = self.host.as_str();
        let (scheme, rest) = host.split_once("://").unwrap_or(("", host));
        let own = |made: Result<Client, Error>| made.map_err(|e| absent(&e.to_string()));
        match (scheme, &self.certs) {
            ("unix", _) => {
                ready(own(Client::connect_with_unix(host, PATIENCE_SECONDS, API_DEFAULT_VERSION))?)
                    .await
                    .map_err(|why| absent(&why))
            }
            ("ssh", _) => {
                let target = Target::parse(rest)?;
                let client = target.client().map_err(|e| absent(&format!("{e:#}")))?;
                ready(client).await.map_err(|why| ssh_refused::fault(&target, &why))
            }
            ("tcp" | "https", Some(certs)) => {
                let client =
                    tls::client(rest, certs).map_err(|e| tls::refused(host, certs, &format!("{e:#}")))?;
                ready(client).await.map_err(|why| tls::refused(host, certs, &why))
            }
            ("tcp" | "http", None) => ready(own(tcp::client(rest))?).await.map_err(|why| absent(&why)),
            (context::SCHEME, _) => Err(context::unknown(rest)),
            _ => {
                let message =
                    format!("DOCKER_HOST={host}: engines are reached by unix://, tcp:// and ssh://");
                Err(Fault::new(Reason::DriverNotHealthy, message)
                    .advice("For instance DOCKER_HOST=ssh://HOST, or none for the engine of this host"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_of_the_nodes_is_not_one_in_a_node() {
        let of = |pairs: &[(&str, &str)]| {
            let find = |name: &str| pairs.iter().find(|(k, _)| *k == name).map(|(_, v)| (*v).to_owned());
            let address = Address::of(find, |_| true);
            (address.host, address.certs.map(|c| c.display().to_string()))
        };
        let host = (unix(Path::new(SOCKET)), None);
        assert_eq!(of(&[]), host);
        assert_eq!(of(&[("DOCKER_HOST", "unix:///x")]).0, "unix:///x");
        let inside = ("DOCKER_HOST", "tcp://192.168.49.2:2376");
        let tls = [("DOCKER_TLS_VERIFY", "1"), ("DOCKER_CERT_PATH", "/c")];
        let active = ("MINIKUBE_ACTIVE_DOCKERD", "minikube");
        assert_eq!(of(&[inside, tls[0], tls[1]]), (inside.1.to_owned(), Some("/c".to_owned())));
        assert_eq!(of(&[inside, tls[0], tls[1], active]), host);
        let before = ("MINIKUBE_EXISTING_DOCKER_HOST", "unix:///y");
        assert_eq!(of(&[inside, active, before]).0, "unix:///y");
    }

    #[test]
    fn a_user_who_may_not_use_the_hosts_has_his_own() {
        let of = |pairs: &[(&str, &str)], usable: &str| {
            let find = |name: &str| pairs.iter().find(|(k, _)| *k == name).map(|(_, v)| (*v).to_owned());
            Address::of(find, |path| path.starts_with(usable)).host
        };
        let own = [("XDG_RUNTIME_DIR", "/run/user/1000")];
        assert_eq!(of(&own, "/run/user"), "unix:///run/user/1000/docker.sock");
        assert_eq!(of(&own, "/"), unix(Path::new(SOCKET)));
        assert_eq!(of(&own, "/nowhere"), unix(Path::new(SOCKET)));
        assert_eq!(of(&[("DOCKER_HOST", "unix:///x"), own[0]], "/run/user"), "unix:///x");
        assert_eq!(of(&[("DOCKER_HOST", "unix:///x"), (ENGINE, "unix:///y")], "/"), "unix:///y");
    }
}
