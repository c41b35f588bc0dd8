//! Where podman's service is. What it does otherwise than Docker is found by asking, not by its name.

use std::path::Path;

use bollard::{ClientVersion, Docker as Client};
use model::{Fault, Reason};
use tokio::time::timeout;

use super::engine::ANSWER;
use super::rootless;

const SOCKET: &str = "/run/podman/podman.sock";
const PATIENCE_SECONDS: u64 = 600;
/// Of Docker's API; podman speaks it since its version 4, and newer ones still do. It is not asked which ones it knows: to
/// tell its version it runs programs and asks the package manager about them, which takes seconds on a busy machine.
const VERSION: &ClientVersion = &ClientVersion { major_version: 1, minor_version: 41 };

/// By podman's own variable, or where systemd's unit has it.
fn address() -> String {
    let host = std::env::var("CONTAINER_HOST").ok().filter(|host| !host.is_empty());
    host.unwrap_or_else(|| format!("unix://{SOCKET}"))
}

pub fn is_roots() -> Result<(), Fault> {
    rootless::podman(Path::new(address().trim_start_matches("unix://")))
}

pub fn connect() -> Result<Client, Fault> {
    let socket = address();
    if !socket.starts_with("unix://") {
        let message = format!("CONTAINER_HOST={socket}: podman on another host is not supported");
        return Err(Fault::new(Reason::DriverNotHealthy, message)
            .advice("Use podman of this host (unset CONTAINER_HOST), or --driver=native as root"));
    }
    let made = Client::connect_with_unix(&socket, PATIENCE_SECONDS, VERSION);
    made.map_err(|e| match closed(Path::new(socket.trim_start_matches("unix://"))) {
        Some(closed) => absent(&closed.to_string()),
        None => absent(&e.to_string()),
    })
}

/// Root's is in a directory of root's own: to others it looks as if there were none.
fn closed(socket: &Path) -> Option<std::io::Error> {
    std::fs::metadata(socket).err().filter(|e| e.kind() == std::io::ErrorKind::PermissionDenied)
}

/// Does it answer?
pub async fn ready(client: Client) -> Result<Client, Fault> {
    match timeout(ANSWER, client.ping()).await {
        Ok(Ok(_)) => Ok(client),
        // The cause is what tells.
        Ok(Err(e)) => Err(absent(&anyhow::Error::from(e).root_cause().to_string())),
        Err(_) => Err(absent("it does not answer")),
    }
}

pub fn absent(why: &str) -> Fault {
    Fault::new(Reason::DriverNotHealthy, format!("podman's service cannot be reached: {why}")).advice(
        if why.to_lowercase().contains("permission denied") {
            "Run the same command with sudo"
        } else {
            "Start it with 'systemctl start podman.socket' as root, or use --driver=native as root"
        },
    )
}

/// For those who have no other engine.
pub fn is_there() -> bool {
    Path::new(SOCKET).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_to_do_depends_on_why() {
        assert!(absent("Permission denied (os error 13)").advice.unwrap().contains("sudo"));
        assert!(absent("it does not answer").advice.unwrap().contains("podman.socket"));
    }
}
