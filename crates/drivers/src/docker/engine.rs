//! Which engine, and does it answer?

use std::time::Duration;

use bollard::Docker as Client;
use bollard::models::SystemInfo;
use model::{Fault, Reason};
use tokio::time::timeout;

use super::{podman, rootless};

/// On a busy machine it may take its time.
pub const ANSWER: Duration = Duration::from_secs(15);

/// The version of the API is agreed on with the engine, so that older ones can be used as well. Or why not.
pub async fn ready(client: Client) -> Result<Client, String> {
    match timeout(ANSWER, client.negotiate_version()).await {
        Ok(Ok(client)) => Ok(client),
        // The cause is what tells: that there was an error is known.
        Ok(Err(e)) => Err(anyhow::Error::from(e).root_cause().to_string()),
        Err(_) => Err("it does not answer".to_owned()),
    }
}

/// Can nodes be containers of this engine? It is `here` if it is reached by a socket of this host.
pub async fn suits(client: &Client, here: bool) -> Result<(), Fault> {
    let info = client.info().await.map_err(|e| absent(&e.to_string()))?;
    if maps_users(&info) {
        // Files of the image are not root's in a container that does without, so that nothing there could become root.
        let message = "This Docker engine gives containers other users than the host's (userns-remap), and nodes need root";
        return Err(Fault::new(Reason::DriverNotHealthy, message).advice(
            "Take userns-remap out of the engine's daemon.json and restart it, or use --driver=native as root",
        ));
    }
    if rootless::is_rootless(&info) { rootless::suits(&info, here) } else { Ok(()) }
}

fn maps_users(info: &SystemInfo) -> bool {
    info.security_options.iter().flatten().any(|option| option == "name=userns")
}

pub fn absent(why: &str) -> Fault {
    let why = why.trim();
    let denied = why.to_lowercase().contains("permission denied");
    let fault = Fault::new(Reason::DriverNotHealthy, format!("The Docker engine cannot be reached: {why}"));
    fault.advice(if denied {
        "Join the group of its socket ('sudo usermod -aG docker $USER', then log in again), or run the same command with sudo"
    } else if why.contains("to an HTTPS server") {
        "It wants TLS: set DOCKER_TLS_VERIFY=1, and DOCKER_CERT_PATH to the directory of ca.pem, cert.pem and key.pem"
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
    fn mapped_users_are_no_cgroup_namespace() {
        let says = |options: &[&str]| {
            let options = options.iter().map(|o| (*o).to_owned()).collect();
            maps_users(&SystemInfo { security_options: Some(options), ..SystemInfo::default() })
        };
        assert!(says(&["name=seccomp,profile=builtin", "name=userns"]));
        assert!(!says(&["name=rootless", "name=cgroupns"]) && !says(&[]));
    }

    #[test]
    fn what_to_do_depends_on_why() {
        assert!(absent("Permission denied (os error 13)").advice.unwrap().contains("group"));
        assert!(absent("No such file").advice.unwrap().contains("Start the engine"));
    }
}
