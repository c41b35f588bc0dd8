//! The Docker engine of a node, started when somebody asks for it.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result};
use model::{Cluster, Fault, Node, Reason};
use tokio::time::sleep;

use super::look;
use crate::ctx::Ctx;

/// It is there in a fraction of a second; on a busy machine in some.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(20);
const ANSWER: Duration = Duration::from_secs(5);

/// Returns when the engine answers; the node's root as the host sees it.
pub async fn ensure(ctx: &Ctx, cluster: &Cluster, node: &Node) -> Result<PathBuf> {
    let machine = cluster.machine(node);
    let root = drivers::machine::root_of(&ctx.home, &machine);
    let root = root.with_context(|| format!("node {machine} does not run"))?;
    if !root.join(bootstrap::docker::PROGRAM).exists() {
        let message = format!("The image that {machine} was made of has no Docker engine");
        return Err(Fault::new(Reason::ImageUnusable, message)
            .advice("Run 'manykube node-image build', then make the node anew"))?;
    }
    let engine = bootstrap::pki::docker::ensure(&ctx.home, cluster, node, SystemTime::now())?;
    for file in bootstrap::docker::files(node.ip, &engine)? {
        // The same again would make the agent look at it anew.
        if drivers::machine::read_file(&ctx.home, &machine, &file.path).as_ref() != Some(&file.data) {
            drivers::machine::write_file(&ctx.home, &machine, &file)?;
        }
    }
    let began = Instant::now();
    let socket = root.join(bootstrap::docker::SOCKET);
    while !answers(&socket).await {
        if began.elapsed() > PATIENCE {
            let agent = look::agent(&ctx.home, &machine).await;
            let why = agent.and_then(|a| a.service("dockerd")?.last_exit.clone());
            let why = why.map(|w| format!(": {w}")).unwrap_or_default();
            anyhow::bail!(
                "the Docker engine of {machine} does not answer{why} (see /var/log/manykube/dockerd.log in the node)"
            );
        }
        sleep(LOOK).await;
    }
    Ok(root)
}

async fn answers(socket: &Path) -> bool {
    let socket = socket.to_owned();
    tokio::task::spawn_blocking(move || ping(&socket).unwrap_or(false)).await.unwrap_or(false)
}

fn ping(socket: &Path) -> std::io::Result<bool> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(ANSWER))?;
    stream.write_all(b"GET /_ping HTTP/1.0\r\nHost: docker\r\n\r\n")?;
    let mut answer = [0; 64];
    let length = stream.read(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer[..length]).contains(" 200 "))
}
