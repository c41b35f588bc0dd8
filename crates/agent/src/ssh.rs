//! SSH into the node: OpenSSH's server, which runs only while somebody is logged in. We listen for it, so that
//! nobody but the host reaches it at all, and an idle node does not pay for it.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::sync::Arc;

use anyhow::{Context, Result};
use model::node_spec::{LOG_DIR, SSH_AUTHORIZED_KEYS, SSH_HOST_KEY};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::spawn_local;

use crate::reaper::Reaper;
use crate::state::Node;

const SSHD: &str = "/usr/sbin/sshd";
/// Where it wants to lock itself up while it does not know its guest.
const EMPTY_DIR: &str = "/run/sshd";
const PORT: u16 = 22;
/// A process each, which a local user who has no key can ask for as well.
const GUESTS: usize = 64;

/// Forever. A node whose image has no such server is none the worse.
pub async fn serve(node: Rc<Node>, reaper: Reaper) {
    if !Path::new(SSHD).exists() {
        return;
    }
    if let Err(e) = listen(&node, &reaper).await {
        tracing::error!("SSH: {e:#}");
    }
}

async fn listen(node: &Node, reaper: &Reaper) -> Result<()> {
    fs_err::create_dir_all(EMPTY_DIR)?;
    let address = SocketAddr::from((node.spec.network.address.addr(), PORT));
    let listener = TcpListener::bind(address).await.with_context(|| format!("listen on {address}"))?;
    let places = Arc::new(Semaphore::new(GUESTS));
    loop {
        // A connection that was given up before we took it is no reason to stop.
        let Ok((stream, peer)) = listener.accept().await else { continue };
        if peer.ip() != node.spec.network.gateway {
            continue;
        }
        // Who comes to a full house is shown the door at once.
        let Ok(place) = places.clone().try_acquire_owned() else { continue };
        match guest(reaper, stream) {
            Ok(mut child) => drop(spawn_local(async move {
                child.wait().await;
                drop(place);
            })),
            Err(e) => tracing::error!("SSH: {e:#}"),
        }
    }
}

fn guest(reaper: &Reaper, stream: TcpStream) -> Result<crate::reaper::Child> {
    let stream = stream.into_std().context("take a connection")?;
    stream.set_nonblocking(false).context("let a connection wait")?;
    let input = OwnedFd::from(stream);
    let output = input.try_clone().context("copy a connection")?;
    let log = fs_err::OpenOptions::new().create(true).append(true).open(format!("{LOG_DIR}/sshd.log"))?;
    let mut command = Command::new(SSHD);
    command.args(["-i", "-e", "-f", "/dev/null"]).args(options().iter().flat_map(|o| ["-o", o]));
    command.stdin(Stdio::from(input)).stdout(Stdio::from(output)).stderr(log.into_parts().0);
    reaper.spawn(&mut command)
}

/// By key only, and only as the user that scripts know.
fn options() -> Vec<String> {
    [
        format!("HostKey={SSH_HOST_KEY}"),
        format!("AuthorizedKeysFile={SSH_AUTHORIZED_KEYS}"),
        "AllowUsers=docker".to_owned(),
        "AuthenticationMethods=publickey".to_owned(),
        "UsePAM=no".to_owned(),
        "UseDNS=no".to_owned(),
        "Subsystem=sftp internal-sftp".to_owned(),
    ]
    .to_vec()
}
