//! Builds a node image from sources.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::store::{NodeImage, Store};

/// How to build.
#[derive(Debug, Clone, Default)]
pub struct BuildOptions {
    /// Where the output of all commands goes; `<cache>/build/build.log` unless named.
    pub log: Option<PathBuf>,
    /// How many things a compiler does at once; the number of cores unless named.
    pub jobs: Option<usize>,
}

/// What happens during a build, for a progress display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BuildEvent {
    /// Another build holds the lock of this cache.
    Waiting,
    Started {
        component: String,
    },
    Finished {
        component: String,
        elapsed: Duration,
        cached: bool,
    },
    Failed {
        component: String,
        elapsed: Duration,
    },
}

/// A command of a build failed. The message has the end of its output.
#[derive(Debug, thiserror::Error)]
#[error("building {component}: `{command}` {what}; the full output is in {}\n{tail}", log.display())]
pub struct BuildFailed {
    pub component: String,
    pub command: String,
    /// e.g. `exited with status 1`.
    pub what: String,
    pub tail: String,
    pub log: PathBuf,
}

pub async fn build(
    _store: &Store,
    version: &str,
    _options: BuildOptions,
    _progress: &(dyn Fn(BuildEvent) + Send + Sync),
) -> Result<NodeImage> {
    bail!("building {version} is not there yet")
}
