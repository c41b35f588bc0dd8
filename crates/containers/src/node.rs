//! The images of one node: its containerd, and where its disk is.

use std::path::PathBuf;

use anyhow::{Context, Result};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::containerd::Client;

const BLOBS: &str = "lib/containerd/io.containerd.content.v1.content/blobs/sha256";

#[derive(Debug, Clone)]
pub struct Node {
    /// Its machine, for messages.
    pub name: String,
    pub client: Client,
    /// The node's /var as this host sees it.
    pub(crate) var: PathBuf,
}

impl Node {
    pub async fn connect<F, R, S>(name: &str, dial: F, var: PathBuf) -> Result<Node>
    where
        F: Fn() -> R + Send + 'static,
        R: Future<Output = std::io::Result<S>> + Send + 'static,
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let client = Client::connect(dial).await.with_context(|| format!("node {name}"))?;
        Ok(Node { name: name.to_owned(), client, var })
    }

    pub(crate) fn blob(&self, hex: &str) -> PathBuf {
        self.var.join(BLOBS).join(hex)
    }

    /// A path of the node below /var, on this host.
    pub(crate) fn on_host(&self, path: &str) -> Result<PathBuf> {
        let below = path.strip_prefix("/var/").with_context(|| format!("{path} is not below /var"))?;
        Ok(self.var.join(below))
    }
}
