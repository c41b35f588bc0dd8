//! The registry addon's part outside the cluster: its data, which lies on the host and is seen by all nodes,
//! and its name, which is `localhost:PORT` on the host as well as in the nodes.

pub mod door;

use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use bootstrap::addons::registry::{DATA, MOUNT, NAME};
use bootstrap::api;
use drivers::Bind;
use model::node_spec::NodeFile;
use model::{Cluster, Fault, Home, Reason};
use serde::{Deserialize, Serialize};

use super::mounts;
use crate::core::{Machines, driver};
use crate::ctx::Ctx;
use crate::state::{atomic, profile};

/// The one that all examples have; another one where that is taken.
const PORTS: std::ops::Range<u16> = 5000..5100;
/// One pod on every node, of an image that all of them have.
const PATIENCE: Duration = Duration::from_secs(120);

/// Beside the profile. The port stays the same: images bear it in their names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    port: u16,
    /// Whether the host answers on that port.
    open: bool,
}

fn record_file(home: &Home, profile: &str) -> PathBuf {
    home.profile(profile).join("registry.json")
}

fn read(home: &Home, profile: &str) -> Option<Record> {
    serde_json::from_slice(&std::fs::read(record_file(home, profile)).ok()?).ok()
}

fn write(home: &Home, profile: &str, record: &Record) -> Result<()> {
    Ok(atomic::write(&record_file(home, profile), &serde_json::to_vec(record)?, 0o600)?)
}

/// What lies in it outlives every node.
fn directory(home: &Home, profile: &str) -> PathBuf {
    home.profile(profile).join("registry")
}

fn is_wanted(cluster: &Cluster) -> bool {
    cluster.addons.get(NAME).copied().unwrap_or(false)
}

/// The port of a cluster's registry; the one that it would get, if it has none.
pub fn port(home: &Home, profile: &str) -> Result<u16> {
    if let Some(record) = read(home, profile) {
        return Ok(record.port);
    }
    let others: Vec<u16> =
        profile::list(home)?.into_iter().filter_map(|(name, _)| read(home, &name).map(|r| r.port)).collect();
    let free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    let mut ports = PORTS.filter(|p| !others.contains(p));
    ports.find(free).with_context(|| format!("no port of {PORTS:?} is free on this host"))
}

/// Before nodes boot: they find the directory, and the host its port.
pub fn prepare(home: &Home, cluster: &Cluster) -> Result<()> {
    if !is_wanted(cluster) {
        return Ok(());
    }
    let record = Record { port: port(home, &cluster.name)?, open: true };
    fs_err::create_dir_all(directory(home, &cluster.name).join(DATA))?;
    if read(home, &cluster.name).as_ref() == Some(&record) {
        return Ok(());
    }
    write(home, &cluster.name, &record)
}

/// The directory, for nodes that boot.
pub fn bind(home: &Home, cluster: &Cluster) -> Option<Bind> {
    let host = directory(home, &cluster.name);
    let wanted = is_wanted(cluster) && host.is_dir();
    wanted.then(|| Bind { host, node: MOUNT.to_owned(), read_only: false })
}

/// Whom the node asks for images of that name. Its own registry comes a moment after the node itself: until then
/// the one behind the virtual address answers.
pub async fn place(home: &Home, cluster: &Cluster, driver: &Machines, machine: &str) -> Result<()> {
    let Some(record) = read(home, &cluster.name).filter(|_| is_wanted(cluster)) else { return Ok(()) };
    let file = hosts_file(cluster.vip(), record.port);
    driver.write(home, machine, &[file]).await.with_context(|| format!("tell {machine} of the registry"))
}

fn hosts_file(vip: Ipv4Addr, port: u16) -> NodeFile {
    let hosts = ["localhost".to_owned(), vip.to_string()].map(|host| {
        format!("[host.\"http://{host}:{port}\"]\ncapabilities = [\"pull\", \"resolve\", \"push\"]\n")
    });
    NodeFile::new(format!("/etc/containerd/certs.d/localhost:{port}/hosts.toml"), 0o644, hosts.concat())
}

/// The directory in nodes that run, and the port on the host.
pub async fn open(ctx: &Ctx, cluster: &Cluster) -> Result<()> {
    prepare(&ctx.home, cluster)?;
    let driver = driver(ctx, cluster.driver);
    for (machine, init) in mounts::running(ctx, cluster) {
        place(&ctx.home, cluster, &driver, &machine).await?;
        if !is_shown(&driver, &machine).await? {
            let host = directory(&ctx.home, &cluster.name);
            mounts::show(init, &machine, &host, MOUNT, false).await?;
        }
    }
    door::spawn(&ctx.home, &cluster.name)
}

/// Whether the node sees the directory.
async fn is_shown(driver: &Machines, machine: &str) -> Result<bool> {
    let found = driver.node(machine).await?.get(&format!("{MOUNT}/{DATA}")).await?;
    Ok(found.is_some_and(|found| found.info.directory))
}

/// After a start: it ended with the last node.
pub fn resume(home: &Home, cluster: &Cluster) -> Result<()> {
    if is_wanted(cluster) { door::spawn(home, &cluster.name) } else { Ok(()) }
}

/// Returns when every node that runs has one that answers, and the host reaches them.
pub async fn answers(ctx: &Ctx, cluster: &Cluster, client: &kube::Client) -> Result<String> {
    let running = mounts::running(ctx, cluster).len();
    api::daemon_set_ready(client, NAME, running, PATIENCE).await?;
    let port = port(&ctx.home, &cluster.name)?;
    let name = format!("localhost:{port}");
    let reached =
        api::until(format!("{name} answers on this host"), door::PATIENCE, || door::ping(port)).await;
    reached.map_err(|unmet| {
        let why = door::last_words(&ctx.home, &cluster.name).unwrap_or(unmet.last);
        let message = format!("The registry runs, but not as {name} on this host: {why}");
        Fault::new(Reason::AddonEnable, message)
            .advice(format!("Nodes reach it; from this host use {}:{port}", cluster.vip()))
    })?;
    Ok(name)
}

/// What was pushed stays until the profile is deleted.
pub async fn close(ctx: &Ctx, cluster: &Cluster) -> Result<()> {
    let Some(record) = read(&ctx.home, &cluster.name) else { return Ok(()) };
    write(&ctx.home, &cluster.name, &Record { open: false, ..record })?;
    let driver = driver(ctx, cluster.driver);
    for (machine, init) in mounts::running(ctx, cluster) {
        if is_shown(&driver, &machine).await? {
            mounts::hide(ctx, &machine, init, MOUNT).await;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_one_profiles() {
        let dir = tempfile::tempdir().expect("a directory");
        let home = Home::new(dir.path(), None);
        let first = port(&home, "a").expect("a port");
        std::fs::create_dir_all(home.profile("b")).expect("make a profile");
        write(&home, "b", &Record { port: first, open: false }).expect("write");
        assert_eq!(port(&home, "b").expect("its own"), first);
        std::fs::write(home.profile_config("b"), "{}").expect("write");
        assert_ne!(port(&home, "a").expect("another"), first);
    }

    #[test]
    fn a_node_asks_itself_first() {
        let file = hosts_file(Ipv4Addr::new(192, 168, 49, 254), 5001);
        assert_eq!(file.path, "/etc/containerd/certs.d/localhost:5001/hosts.toml");
        let text = String::from_utf8(file.data).expect("text");
        let hosts: Vec<&str> = text.lines().filter(|l| l.starts_with('[')).collect();
        assert_eq!(hosts, ["[host.\"http://localhost:5001\"]", "[host.\"http://192.168.49.254:5001\"]"]);
    }
}
