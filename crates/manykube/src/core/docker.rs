//! The Docker engine of a node, started when somebody asks for it.

use std::time::{Duration, Instant, SystemTime};

use anyhow::Result;
use model::{Cluster, Fault, Node, Reason};
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{sleep, timeout};

use super::driver;
use crate::ctx::Ctx;

/// It is there in a fraction of a second; on a busy machine in some.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(20);
const ANSWER: Duration = Duration::from_secs(5);

/// Its socket, for [`protocol::Node::dial`].
pub fn socket() -> String {
    format!("unix:/{}", bootstrap::docker::SOCKET)
}

/// Returns when the engine answers.
pub async fn ensure(ctx: &Ctx, cluster: &Cluster, node: &Node) -> Result<protocol::Node> {
    let machine = cluster.machine(node);
    let driver = driver(ctx, cluster.driver);
    let channel = driver.node(&machine).await?;
    if channel.get(&format!("/{}", bootstrap::docker::PROGRAM)).await?.is_none() {
        let message = format!("The image that {machine} was made of has no Docker engine");
        return Err(Fault::new(Reason::ImageUnusable, message)
            .advice("Run 'manykube node-image build', then make the node anew"))?;
    }
    let engine = bootstrap::pki::docker::ensure(&ctx.home, cluster, node, SystemTime::now())?;
    let files = bootstrap::docker::files(node.ip, &engine)?;
    let found = channel.digests(files.iter().map(|f| f.path.clone()).collect()).await?;
    // Writing the same again would make the agent restart it.
    let wanted = |file: &model::node_spec::NodeFile| <[u8; 32]>::from(Sha256::digest(&file.data));
    let other =
        files.into_iter().zip(&found).filter(|(file, found)| found.is_none_or(|f| f.sha256 != wanted(file)));
    let other: Vec<_> = other.map(|(file, _)| file).collect();
    if !other.is_empty() {
        channel.put(&other).await?;
    }
    let began = Instant::now();
    while !timeout(ANSWER, answers(&channel)).await.is_ok_and(|answer| answer.unwrap_or(false)) {
        if began.elapsed() > PATIENCE {
            let agent = driver.state(&machine).await;
            let why = agent.and_then(|a| a.service("dockerd")?.last_exit.clone());
            let why = why.map(|w| format!(": {w}")).unwrap_or_default();
            anyhow::bail!(
                "the Docker engine of {machine} does not answer{why} (see /var/log/manykube/dockerd.log in the node)"
            );
        }
        sleep(LOOK).await;
    }
    Ok(channel)
}

async fn answers(channel: &protocol::Node) -> Result<bool> {
    let mut stream = channel.dial(&[socket()]).await?;
    stream.write_all(b"GET /_ping HTTP/1.0\r\nHost: docker\r\n\r\n").await?;
    let mut answer = [0; 64];
    let length = stream.read(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer[..length]).contains(" 200 "))
}
