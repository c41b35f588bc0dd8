//! Where the engine is, asked once for each engine and kept: the question takes a container.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use drivers::docker::inside::{Engine, Whereabouts};

use crate::ctx::Ctx;
use crate::state::atomic;

pub async fn of(ctx: &Ctx, engine: &Engine) -> Result<Whereabouts> {
    let file = ctx.home.root().join("config/engines.json");
    let known = std::fs::read(&file).ok().and_then(|text| serde_json::from_slice(&text).ok());
    let mut known: BTreeMap<String, Whereabouts> = known.unwrap_or_default();
    let key = key(engine, ctx.home.root().to_owned())?;
    if let Some(found) = known.get(&key) {
        return Ok(*found);
    }
    let found = engine.whereabouts(ctx.home.root()).await?;
    // Those of other days are of no use.
    known.retain(|other, _| other.split(' ').nth(1) == key.split(' ').nth(1));
    known.insert(key, found);
    atomic::write(&file, &serde_json::to_vec(&known)?, 0o600)?;
    Ok(found)
}

/// An engine that was started anew has another socket; a host that was, another boot; and we may be elsewhere.
fn key(engine: &Engine, home: PathBuf) -> Result<String> {
    let host = &engine.address.host;
    let socket = host.strip_prefix("unix://").and_then(|path| std::fs::metadata(path).ok());
    let socket = socket.map_or_else(String::new, |m| format!("{}:{}:{}", m.dev(), m.ino(), m.ctime_nsec()));
    let network = std::fs::read_link("/proc/self/ns/net").context("find the own network")?;
    let home = fs_err::metadata(home)?;
    Ok(format!("{host} {} {} {socket} {}:{}", drivers::boot_id(), network.display(), home.dev(), home.ino()))
}
