//! A socket on this host that leads to one in a node, for programs that know sockets only.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use protocol::Node;
use tokio::net::UnixListener;
use tokio::task::JoinHandle;

use crate::background;

/// Closed when it is dropped.
pub struct LocalSocket {
    dir: tempfile::TempDir,
    task: JoinHandle<()>,
}

impl LocalSocket {
    /// In a directory where only this user comes.
    pub fn open(node: Node, target: String) -> Result<LocalSocket> {
        let dir = tempfile::tempdir().context("make a temporary directory")?;
        let listener = UnixListener::bind(path(dir.path())).context("make a socket")?;
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (node, target) = (node.clone(), target.clone());
                tokio::spawn(async move {
                    match node.dial(&[target]).await {
                        Ok(stream) => background::relay(client, stream).await,
                        Err(e) => tracing::warn!("{e}"),
                    }
                });
            }
        });
        Ok(LocalSocket { dir, task })
    }

    pub fn path(&self) -> PathBuf {
        path(self.dir.path())
    }
}

impl Drop for LocalSocket {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn path(dir: &Path) -> PathBuf {
    dir.join("socket")
}
