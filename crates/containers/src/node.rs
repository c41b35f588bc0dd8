//! The images of one node: its containerd.

use anyhow::{Context as _, Result};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::containerd::Client;

#[derive(Debug, Clone)]
pub struct Node {
    /// Its machine, for messages.
    pub name: String,
    pub client: Client,
}

impl Node {
    pub async fn connect<F, R, S>(name: &str, dial: F) -> Result<Node>
    where
        F: Fn() -> R + Send + 'static,
        R: Future<Output = std::io::Result<S>> + Send + 'static,
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let client = Client::connect(dial).await.with_context(|| format!("node {name}"))?;
        Ok(Node { name: name.to_owned(), client })
    }
}
