//! Commands that run where the engine is: in a container that is there for as long as the command.
//!
//! Who may use the engine may have it do anything on its host as root, by way of a privileged container. This
//! is that way, and it is gone open: the container has the host's processes, network and cgroups, and its
//! first process (`enter`) goes over to the files that the engine itself sees. So a command that is run there
//! finds all as root on that host would, and knows nothing of where it was called.

mod caller;
mod container;
mod enter;
mod errand;
mod image;
mod luggage;
mod seek;
mod signals;
mod volume;
mod whereabouts;

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use base::Stream;
use bollard::Docker as Client;
use bollard::query_parameters::ListContainersOptionsBuilder;
use model::Fault;

pub use super::flow::{archive, gave_up};
use super::{Address, HOME, NAME, PROFILE};
use crate::driver::NoStream;
pub use enter::NOT_RUN;
pub use errand::Outcome;
pub use luggage::Luggage;
pub use signals::Signals;
pub use volume::Volume;
pub use whereabouts::Whereabouts;

/// Where our program is in its image.
const PROGRAM: &str = "/manykube";

/// What the container begins with.
pub const ENTER: &str = "engine-enter";

/// Runs `engine-enter` when the command was called as such.
pub fn entry(command: &str, args: &[OsString]) -> Option<ExitCode> {
    (command == ENTER).then(|| enter::main(args.first()))
}

/// A command to be run there.
pub struct Errand {
    /// With the name that we were called by.
    pub argv: Vec<String>,
    pub env: Vec<(String, String)>,
    pub dir: PathBuf,
    pub home: Place,
    pub luggage: Luggage,
    pub input: Input,
    /// What it prints is for us, not for the user.
    pub keep: bool,
}

/// Where it has its home.
pub enum Place {
    /// Here: the engine must see the same directory.
    Same(PathBuf),
    /// An archive that is unpacked there first, and a directory that is fetched afterwards.
    There { volume: Volume, send: Vec<u8>, fetch: PathBuf },
}

/// What the command reads.
pub enum Input {
    /// What it does not read is left to others.
    Nothing,
    /// What we are given ourselves.
    Ours,
    /// What we have read already.
    Bytes(Vec<u8>),
    /// What somebody writes while it is read.
    Stream(Box<dyn tokio::io::AsyncRead + Send + Unpin>),
}

impl Input {
    fn is_some(&self) -> bool {
        !matches!(self, Input::Nothing)
    }
}

/// An engine that answers.
#[derive(Clone)]
pub struct Engine {
    client: Client,
    pub address: Address,
}

impl Engine {
    pub async fn find(address: Address) -> Result<Engine, Fault> {
        Ok(Engine { client: address.connect().await?, address })
    }

    /// Machines of a profile that run, by the home that they belong to.
    pub async fn running(&self, home: &str, profile: &str) -> anyhow::Result<Vec<String>> {
        let labels = vec![format!("{HOME}={home}"), format!("{PROFILE}={profile}")];
        let filters = HashMap::from([("label", labels), ("status", vec!["running".to_owned()])]);
        let options = ListContainersOptionsBuilder::default().filters(&filters).build();
        let found =
            self.client.list_containers(Some(options)).await.context("list the engine's containers")?;
        Ok(found.into_iter().filter_map(|c| c.labels?.remove(NAME)).collect())
    }

    /// A stream to the agent of a node that runs.
    pub async fn connect(&self, node: &str) -> Result<Stream, NoStream> {
        super::connect::connect(&self.client, node).await
    }

    /// Can nodes be its containers?
    pub async fn suits(&self) -> Result<(), Fault> {
        if let Some(socket) = self.address.host.strip_prefix("unix://") {
            super::rootless::disguised(&self.client, std::path::Path::new(socket)).await?;
        }
        super::engine::suits(&self.client, self.address.is_socket()).await
    }
}
