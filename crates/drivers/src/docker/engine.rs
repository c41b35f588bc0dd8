//! Which engine, and does it answer?

use std::time::Duration;

use bollard::{API_DEFAULT_VERSION, Docker as Client};
use model::{Fault, Reason};
use tokio::time::timeout;

use super::podman;

const SOCKET: &str = "/var/run/docker.sock";
const PATIENCE_SECONDS: u64 = 600;
/// podman runs programs to tell its version, which takes seconds on a busy machine.
const ANSWER: Duration = Duration::from_secs(15);

/// `docker-env` points DOCKER_HOST into a node; the engine of the nodes is the one from before that.
fn host(var: impl Fn(&str) -> Option<String>) -> Option<String> {
    let var = |name: &str| var(name).filter(|value| !value.is_empty());
    match var("MINIKUBE_ACTIVE_DOCKERD") {
        Some(_) => var("MINIKUBE_EXISTING_DOCKER_HOST"),
        None => var("DOCKER_HOST"),
    }
}

pub fn connect() -> Result<Client, Fault> {
    let host = host(|name| std::env::var(name).ok());
    let made = match host.as_deref() {
        None => Client::connect_with_unix(SOCKET, PATIENCE_SECONDS, API_DEFAULT_VERSION),
        Some(unix) if unix.starts_with("unix://") => {
            Client::connect_with_unix(unix, PATIENCE_SECONDS, API_DEFAULT_VERSION)
        }
        Some(other) => {
            return Err(Fault::new(
                Reason::DriverNotHealthy,
                format!("DOCKER_HOST={other}: an engine on another host is not supported yet"),
            )
            .advice("Use an engine of this host (unset DOCKER_HOST), or --driver=native as root"));
        }
    };
    made.map_err(|e| absent(&e.to_string()))
}

/// The version of the API is agreed on with the engine, so that older ones can be used as well.
pub async fn ready(client: Client) -> Result<Client, Fault> {
    match timeout(ANSWER, client.negotiate_version()).await {
        Ok(Ok(client)) => Ok(client),
        // The cause is what tells: that there was an error is known.
        Ok(Err(e)) => Err(absent(&anyhow::Error::from(e).root_cause().to_string())),
        Err(_) => Err(absent("it does not answer")),
    }
}

/// Can nodes be containers of this engine, and reached from here?
pub async fn suits(client: &Client) -> Result<(), Fault> {
    let info = client.info().await.map_err(|e| absent(&e.to_string()))?;
    let rootless = info.security_options.iter().flatten().any(|o| o.contains("rootless"));
    let fault = |message: &str| Fault::new(Reason::DriverNotHealthy, message);
    if rootless {
        return Err(fault("This Docker engine is rootless, which is not supported yet")
            .advice("Use the host's own engine, or --driver=native as root"));
    }
    Ok(())
}

fn absent(why: &str) -> Fault {
    let denied = why.to_lowercase().contains("permission denied");
    let fault = Fault::new(Reason::DriverNotHealthy, format!("The Docker engine cannot be reached: {why}"));
    fault.advice(if denied {
        "Join the group of its socket ('sudo usermod -aG docker $USER', then log in again), or run the same command with sudo"
    } else if podman::is_there() {
        "Start the engine, or use podman, which is there: --driver=podman"
    } else {
        "Start the engine, or use --driver=native as root"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_of_the_nodes_is_not_one_in_a_node() {
        let vars = |pairs: &[(&str, &str)]| {
            let pairs: Vec<(String, String)> =
                pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
            host(move |name| pairs.iter().find(|(k, _)| k == name).map(|(_, v)| v.clone()))
        };
        assert_eq!(vars(&[]), None);
        assert_eq!(vars(&[("DOCKER_HOST", "unix:///x")]).as_deref(), Some("unix:///x"));
        let inside = ("DOCKER_HOST", "tcp://192.168.49.2:2376");
        let active = ("MINIKUBE_ACTIVE_DOCKERD", "minikube");
        assert_eq!(vars(&[inside, active]), None);
        let before = ("MINIKUBE_EXISTING_DOCKER_HOST", "unix:///y");
        assert_eq!(vars(&[inside, active, before]).as_deref(), Some("unix:///y"));
    }

    #[test]
    fn what_to_do_depends_on_why() {
        assert!(absent("Permission denied (os error 13)").advice.unwrap().contains("group"));
        assert!(absent("No such file").advice.unwrap().contains("Start the engine"));
    }
}
