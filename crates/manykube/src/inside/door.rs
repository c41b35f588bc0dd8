//! `127.0.0.1:PORT` for an API server whose addresses are not in our network: a process (`doorman`) hands each
//! connection on, by way of the engine.
//!
//! Here is what is known of a door: a record that says where it leads, and whether somebody is at it.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use drivers::docker::Address;
use drivers::docker::inside::Engine;
use model::{Cluster, Home};
use serde::{Deserialize, Serialize};
use tokio::net::TcpStream;
use tokio::time::sleep;

use super::doorman;
pub use super::doorman::{COMMAND, main};
use super::ways::Ways;
use crate::ctx::Ctx;
use crate::state::atomic;
use crate::{background, commands};

const OPENS: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    pub port: u16,
    pub engine: Address,
    /// The home that the machines belong to, as their labels say it.
    pub home: String,
}

/// What was found, and done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    There,
    Revived,
    /// The port was somebody else's by now: it is another one.
    Moved,
}

pub fn file(home: &Home, profile: &str, what: &str) -> PathBuf {
    home.root().join("doors").join(format!("{profile}.{what}"))
}

pub fn read(home: &Home, profile: &str) -> Option<Record> {
    serde_json::from_slice(&std::fs::read(file(home, profile, "json")).ok()?).ok()
}

fn write(home: &Home, profile: &str, record: &Record) -> Result<()> {
    Ok(atomic::write(&file(home, profile, "json"), &serde_json::to_vec(record)?, 0o600)?)
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

/// Chooses the port, which stays the same for as long as there is the cluster and nobody else takes it. Whether this is
/// anything new.
pub fn reserve(home: &Home, profile: &str, engine: &Address, machines: &Path) -> Result<bool> {
    let before = read(home, profile);
    let port = match &before {
        Some(before) => before.port,
        None => free_port()?,
    };
    let record = Record { port, engine: engine.clone(), home: machines.to_string_lossy().into_owned() };
    let new = before.as_ref() != Some(&record);
    if new {
        write(home, profile, &record)?;
    }
    Ok(new)
}

fn free_port() -> Result<u16> {
    let found = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
    Ok(found.context("find a free port")?.port())
}

fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// Its process ends when it finds nothing to be there for.
pub fn forget(home: &Home, profile: &str) -> Result<()> {
    for what in ["json", "lock", "log"] {
        match std::fs::remove_file(file(home, profile, what)) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e).context("forget the door"),
            _ => {}
        }
    }
    Ok(())
}

/// Sees to it that the cluster's door, if it has one, is open, and that kubectl knows it.
pub async fn look_after(ctx: &Ctx, cluster: &Cluster) -> Result<Kept> {
    let kept = keep(&ctx.home, &cluster.name).await?;
    if kept == Kept::Moved {
        commands::move_kubectl(ctx, cluster)?;
    }
    Ok(kept)
}

async fn keep(home: &Home, profile: &str) -> Result<Kept> {
    let mut kept = Kept::There;
    let began = Instant::now();
    // Read each time: another command may be at the same.
    while let Some(mut record) = read(home, profile) {
        match doorman::found(home, profile) {
            doorman::Found::At(served) if served == record && is_open(record.port).await => return Ok(kept),
            doorman::Found::Nobody if kept == Kept::There => {
                kept = Kept::Revived;
                if !is_free(record.port) {
                    record.port = free_port()?;
                    write(home, profile, &record)?;
                    kept = Kept::Moved;
                }
                let log = fs_err::File::create(file(home, profile, "log"))?.into_parts().0;
                background::spawn(home, COMMAND, &[profile], log)?;
            }
            _ => {}
        }
        if began.elapsed() > OPENS {
            let words = std::fs::read_to_string(file(home, profile, "log")).unwrap_or_default();
            bail!("nobody opens 127.0.0.1:{}, the way to the API server: {}", record.port, words.trim());
        }
        sleep(Duration::from_millis(50)).await;
    }
    Ok(kept)
}

async fn is_open(port: u16) -> bool {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_stays_whatever_leads_there() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path(), None);
        let at = |host: &str| Address { host: host.into(), certs: None };
        assert!(reserve(&home, "demo", &at("ssh://far"), Path::new("/v/.manykube")).unwrap());
        assert!(!reserve(&home, "demo", &at("ssh://far"), Path::new("/v/.manykube")).unwrap());
        let first = read(&home, "demo").unwrap();
        reserve(&home, "demo", &at("tcp://far:2376"), Path::new("/v/.manykube")).unwrap();
        let second = read(&home, "demo").unwrap();
        assert_eq!((second.port, second.engine.host.as_str()), (first.port, "tcp://far:2376"));
        assert_eq!(server(&home, "demo").unwrap(), format!("https://127.0.0.1:{}", first.port));
        forget(&home, "demo").unwrap();
        forget(&home, "demo").unwrap();
        assert_eq!(address(&home, "demo"), None);
    }

    #[test]
    fn a_strangers_port_is_not_free() {
        let stranger = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = stranger.local_addr().unwrap().port();
        assert!(!is_free(port));
        drop(stranger);
        assert!(is_free(port));
    }
}
