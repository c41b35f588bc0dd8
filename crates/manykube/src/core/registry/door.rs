//! `localhost:PORT` on the host: a process that hands connections on to whichever node answers.
//!
//! It is there as long as nodes run: what a client on the host calls localhost is one for Docker, too, which wants
//! no TLS there, and nothing else of the host is reachable by it.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use fs_err::os::unix::fs::OpenOptionsExt as _;
use model::{Cluster, Home};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

use super::read;
use crate::background;
use crate::core::{Machines, driver_in};
use crate::state::profile;

/// The hidden command.
pub const COMMAND: &str = "registry-door";
/// A node that does not answer at once is passed by.
const CONNECT: Duration = Duration::from_secs(1);
/// Between two looks whether it is still wanted.
const LOOK: Duration = Duration::from_secs(1);
/// Until somebody who was here before is gone.
const HANDOVER: Duration = Duration::from_secs(3);
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

fn log(home: &Home, profile: &str) -> PathBuf {
    home.profile(profile).join("registry-door.log")
}

/// Why it ended, if it did.
pub(super) fn last_words(home: &Home, profile: &str) -> Option<String> {
    let text = std::fs::read_to_string(log(home, profile)).ok()?;
    text.lines().last().map(str::to_owned)
}

/// A second one finds the first at work, and ends.
pub(super) fn spawn(home: &Home, profile: &str) -> Result<()> {
    let log = fs_err::File::create(log(home, profile))?.into_parts().0;
    background::spawn(home, COMMAND, &[profile], log)
}

/// `registry-door HOME CACHE PROFILE`.
pub fn main(args: &[OsString]) -> ExitCode {
    background::main(args, async |home, [profile]| {
        tokio::select! {
            done = serve(home, profile) => done,
            () = unwanted(home, profile) => Ok(()),
        }
    })
}

async fn serve(home: &Home, profile: &str) -> Result<()> {
    let lock = home.profile(profile).join("registry-door.lock");
    let lock = fs_err::OpenOptions::new().create(true).append(true).mode(0o600).open(lock)?.into_parts().0;
    let alone = async {
        while lock.try_lock().is_err() {
            sleep(LOOK).await;
        }
    };
    if timeout(HANDOVER, alone).await.is_err() {
        return Ok(());
    }
    let port = read(home, profile).context("the cluster has no registry")?.port;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let listener = TcpListener::bind(address).await.with_context(|| format!("listen on {address}"))?;
    let cluster = profile::load(home, profile)?.context("the cluster has no configuration")?.cluster;
    let machines = driver_in(home, cluster.driver);
    let each = |client| {
        // Nodes come and go.
        if let Ok(Some(file)) = profile::load(home, profile) {
            tokio::spawn(hand_on(client, machines.clone(), file.cluster, port));
        }
    };
    background::take(&listener, each).await;
    Ok(())
}

/// To the virtual address first, which is that of a node that answers.
async fn hand_on(client: TcpStream, machines: Machines, cluster: Cluster, port: u16) {
    let nodes: Vec<String> = cluster.nodes.iter().map(|n| cluster.machine(n)).collect();
    // Asked once for all addresses.
    let via = machines.holder_first(&nodes).await;
    for ip in [cluster.vip()].into_iter().chain(cluster.nodes.iter().map(|n| n.ip)) {
        if let Ok(node) = machines.dial_by(&via, SocketAddrV4::new(ip, port)).await {
            background::relay(client, node).await;
            return;
        }
    }
}

/// Ends when no node runs any more, or the registry was switched off.
async fn unwanted(home: &Home, profile: &str) {
    loop {
        sleep(LOOK).await;
        let open = read(home, profile).is_some_and(|r| r.open);
        let Ok(Some(file)) = profile::load(home, profile) else { return };
        let machines = file.cluster.nodes.iter().map(|n| file.cluster.machine(n));
        if !open || !machines.into_iter().any(|m| drivers::machine::init_of(home, &m).is_some()) {
            return;
        }
    }
}

/// One look at whether a registry answers on the host.
pub(super) async fn ping(port: u16) -> Result<(), String> {
    let ask = async {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
        stream.write_all(b"GET /v2/ HTTP/1.0\r\nHost: localhost\r\n\r\n").await?;
        let mut answer = [0; 64];
        let length = stream.read(&mut answer).await?;
        Ok::<_, std::io::Error>(
            String::from_utf8_lossy(&answer[..length]).lines().next().unwrap_or("").to_owned(),
        )
    };
    match timeout(CONNECT, ask).await {
        Ok(Ok(line)) if line.contains(" 200 ") => Ok(()),
        Ok(Ok(line)) => Err(format!("it says {line:?}")),
        Ok(Err(e)) => Err(e.to_string()),
        Err(_) => Err("no answer".to_owned()),
    }
}
