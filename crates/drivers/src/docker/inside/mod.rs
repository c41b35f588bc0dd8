//! Commands that run where the engine is: in a container that is there for as long as the command.
//!
//! Who may use the engine may have it do anything on its host as root, by way of a privileged container. This
//! is that way, and it is gone open: the container has the host's processes, network and cgroups, and its
//! first process (`enter`) goes over to the files that the engine itself sees. So a command that is run there
//! finds all as root on that host would, and knows nothing of where it was called.

mod container;
mod enter;
mod errand;
mod image;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use bollard::Docker as Client;
use model::Fault;

pub use enter::NOT_RUN;

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
    /// A directory that must be the same one there.
    pub home: PathBuf,
    pub input: Input,
}

/// What the command reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// What it does not read is left to others.
    Nothing,
    /// What we are given ourselves.
    Ours,
    /// What we have read already.
    Bytes(Vec<u8>),
}

/// An engine that answers.
pub struct Engine {
    client: Client,
}

impl Engine {
    /// The one that the `docker` command would use.
    pub async fn find() -> Result<Engine, Fault> {
        let client = super::engine::ready(super::engine::connect()?).await?;
        Ok(Engine { client })
    }
}
