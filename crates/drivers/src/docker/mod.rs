//! Machines that are containers of a Docker engine, or of one that speaks its language.
//!
//! A machine is the same directory as with the native driver, and its root is made of the same parts: the
//! engine gives image, namespaces, cgroup and network, and what runs first in the container (`init`) puts
//! the node's own files over the image. So a container is only a machine that runs: it is made when the
//! machine boots, and whoever removes it takes nothing away that `start` cannot make again.

mod connect;
mod container;
mod driver;
mod engine;
mod flow;
mod freeze;
mod image;
mod init;
pub mod inside;
mod network;
mod podman;
mod pull;
mod reach;
mod refused;
mod rootless;
mod size;

use std::ffi::OsString;
use std::process::ExitCode;

use bollard::Docker as Client;
use model::{DriverKind, Fault, Home};
pub use reach::Address;
pub use rootless::owns;
use tokio::sync::{Mutex, OnceCell};

/// minikube's labels, by which other tools find its machines.
const CREATED_BY: &str = "created_by.minikube.sigs.k8s.io";
const NAME: &str = "name.minikube.sigs.k8s.io";
const MODE: &str = "mode.minikube.sigs.k8s.io";
const ROLE: &str = "role.minikube.sigs.k8s.io";
/// Ours: minikube's say which machine it is, but neither of which cluster nor whose.
const PROFILE: &str = "manykube.profile";
const HOME: &str = "manykube.home";
/// Of a container that a command runs in.
const INSIDE: &str = "manykube.inside";

/// Set for a command that is run by an engine: that engine's address where it runs.
pub const ENGINE: &str = "MANYKUBE_ENGINE";

/// The program of ours that a container begins with.
pub const INIT: &str = "docker-init";

/// Runs `docker-init` or `engine-enter` when the command was called as such.
pub fn entry(command: &str, args: &[OsString]) -> Option<ExitCode> {
    (command == INIT).then(init::main).or_else(|| inside::entry(command, args))
}

pub struct Docker {
    home: Home,
    /// Which engine is asked; what it can do is another question.
    kind: DriverKind,
    client: OnceCell<Client>,
    /// Nodes boot at once, and the first one brings the image for all.
    bringing: Mutex<()>,
}

impl Docker {
    pub fn new(home: Home, kind: DriverKind) -> Docker {
        Docker { home, kind, client: OnceCell::new(), bringing: Mutex::new(()) }
    }

    /// The engine that the `docker` command would use, asked once whether it is there.
    async fn client(&self) -> Result<&Client, Fault> {
        let made = self.client.get_or_try_init(|| async {
            match self.kind {
                DriverKind::Podman => podman::ready(podman::connect()?).await,
                _ => Address::of_environment().connect().await,
            }
        });
        made.await
    }

    /// In labels: whose machines these are.
    fn owner(&self) -> String {
        self.home.root().to_string_lossy().into_owned()
    }
}
