//! `127.0.0.1:PORT` for an API server whose addresses are not in our network: a process that hands each connection
//! on, by way of the engine, to a node that runs, and from there to an API server that answers.
//!
//! The virtual address comes first: whoever holds it spreads over the API servers that are healthy. So the door
//! belongs to no control plane, and the loss of one is not the loss of the port.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener as StdListener};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use drivers::docker::Address;
use drivers::docker::inside::Engine;
use model::Home;
use serde::{Deserialize, Serialize};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

use super::ways::Ways;
use crate::background;
use crate::state::{atomic, profile};

/// The hidden command.
pub const COMMAND: &str = "api-door";
/// Between two looks at who runs.
const LOOK: Duration = Duration::from_secs(1);
/// Nodes that restart all at once are back before this.
const GONE: Duration = Duration::from_secs(30);
const OPENS: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    port: u16,
    engine: Address,
    /// The home that the machines belong to, as their labels say it.
    home: String,
}

fn file(home: &Home, profile: &str, what: &str) -> PathBuf {
    home.root().join("doors").join(format!("{profile}.{what}"))
}

fn read(home: &Home, profile: &str) -> Option<Record> {
    serde_json::from_slice(&std::fs::read(file(home, profile, "json")).ok()?).ok()
}

/// The engine that a profile's machines are at, if it is behind a door.
pub fn address(home: &Home, profile: &str) -> Option<Address> {
    read(home, profile).map(|record| record.engine)
}

/// Into the network of a profile that is behind a door.
pub fn ways(home: &Home, profile: &str, engine: &Engine) -> Option<Ways> {
    read(home, profile).map(|record| Ways::new(engine.clone(), record.home, profile.to_owned()))
}

/// Where clients here reach the API server.
pub fn server(home: &Home, profile: &str) -> Option<String> {
    read(home, profile).map(|record| format!("https://127.0.0.1:{}", record.port))
}

/// Chooses the port, which stays the same for as long as there is the cluster. Whether there was none before.
pub fn reserve(home: &Home, profile: &str, engine: &Address, machines: &Path) -> Result<bool> {
    let before = read(home, profile);
    let free = || StdListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|l| l.local_addr());
    let port = match &before {
        Some(before) => before.port,
        None => free().context("find a free port")?.port(),
    };
    let record = Record { port, engine: engine.clone(), home: machines.to_string_lossy().into_owned() };
    if before.as_ref() == Some(&record) {
        return Ok(false);
    }
    atomic::write(&file(home, profile, "json"), &serde_json::to_vec(&record)?, 0o600)?;
    Ok(before.is_none())
}

/// It ends when it finds nothing to be there for.
pub fn forget(home: &Home, profile: &str) -> Result<()> {
    for what in ["json", "lock", "log"] {
        match std::fs::remove_file(file(home, profile, what)) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e).context("forget the door"),
            _ => {}
        }
    }
    Ok(())
}

/// Starts it unless it is there; whether it had to be.
pub async fn keep(home: &Home, profile: &str) -> Result<bool> {
    let Some(record) = read(home, profile) else { return Ok(false) };
    if is_open(record.port).await {
        return Ok(false);
    }
    let log = fs_err::File::create(file(home, profile, "log"))?.into_parts().0;
    background::spawn(home, COMMAND, &[profile], log)?;
    let began = Instant::now();
    while !is_open(record.port).await {
        if began.elapsed() > OPENS {
            let words = std::fs::read_to_string(file(home, profile, "log")).unwrap_or_default();
            bail!("nothing listens on 127.0.0.1:{}: {}", record.port, words.trim());
        }
        sleep(Duration::from_millis(50)).await;
    }
    Ok(true)
}

async fn is_open(port: u16) -> bool {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.is_ok()
}

/// `api-door HOME CACHE PROFILE`.
pub fn main(args: &[OsString]) -> ExitCode {
    background::main(args, async |home, [profile]| serve(home, profile).await)
}

async fn serve(home: &Home, profile: &str) -> Result<()> {
    let record = read(home, profile).context("the cluster has no door")?;
    let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, record.port);
    let listener = TcpListener::bind(address).await.with_context(|| format!("listen on {address}"))?;
    let engine = Engine::find(record.engine.clone()).await?;
    let ways = Arc::new(Ways::new(engine, record.home.clone(), profile.to_owned()));
    let taking = async {
        loop {
            // A connection that was given up before we took it is no reason to stop.
            let Ok((client, _)) = listener.accept().await else { continue };
            tokio::spawn(hand_on(client, ways.clone(), api_servers(home, profile)));
        }
    };
    tokio::select! {
        () = taking => Ok(()),
        () = watch(&ways, || read(home, profile).as_ref() == Some(&record)) => Ok(()),
    }
}

/// Ends when the cluster is gone, or none of its nodes has run for a while.
async fn watch(ways: &Ways, wanted: impl Fn() -> bool) {
    let mut seen = Instant::now();
    while wanted() && seen.elapsed() < GONE {
        // An engine that cannot be asked may come back.
        if ways.look().await.unwrap_or(true) {
            seen = Instant::now();
        }
        sleep(LOOK).await;
    }
}

fn api_servers(home: &Home, profile: &str) -> Vec<SocketAddrV4> {
    let Ok(Some(file)) = profile::load(home, profile) else { return Vec::new() };
    let cluster = &file.cluster;
    let all = [cluster.vip()].into_iter().chain(cluster.control_planes().map(|node| node.ip));
    all.map(|ip| SocketAddrV4::new(ip, cluster.api_port)).collect()
}

/// Joins a connection of ours to an address of theirs.
pub async fn hand_on(client: TcpStream, ways: Arc<Ways>, to: Vec<SocketAddrV4>) {
    if let Some(tunnel) = ways.connect(&to).await {
        tunnel.join(client).await;
    }
}
