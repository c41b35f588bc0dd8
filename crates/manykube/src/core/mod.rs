//! What touches machines: observe, plan, run. The commands call these and nothing below them.

use std::net::Ipv4Addr;
use std::process::Output;
use std::time::Duration;

use anyhow::Result;
use ipnet::Ipv4Net;
use model::status::NodeStatusInput;
use model::{Cluster, Node};

use crate::ctx::Ctx;

/// How a start is to be done, as opposed to what is to be there after it.
#[derive(Debug, Clone)]
pub struct StartOpts {
    pub dry_run: bool,
    pub wait_timeout: Duration,
    pub force: bool,
    /// The profile was made by this command: after a failure it may be removed again.
    pub delete_on_failure: bool,
}

/// What a start did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Started {
    /// There was nothing to do.
    AlreadyRunning,
    Changed,
}

/// Plans and runs (or, with `dry_run`, prints the plan). The caller holds the profile's lock, has saved `cluster`
/// (not when dry) and writes the user's kubeconfig afterwards.
pub async fn start(_ctx: &Ctx, _cluster: &Cluster, _opts: StartOpts) -> Result<Started> {
    anyhow::bail!("not wired yet")
}

/// Stops all machines; the number of nodes that have one.
pub async fn stop(_ctx: &Ctx, _cluster: &Cluster) -> Result<usize> {
    anyhow::bail!("not wired yet")
}

/// Removes all machines and the network of a profile, also when its configuration is missing or corrupt.
/// The caller removes the profile's directory afterwards.
pub async fn delete(_ctx: &Ctx, _profile: &str, _cluster: Option<&Cluster>) -> Result<()> {
    anyhow::bail!("not wired yet")
}

/// One answer per node, in the order of `cluster.nodes`.
pub async fn observe(_ctx: &Ctx, _cluster: &Cluster) -> Result<Vec<NodeStatusInput>> {
    anyhow::bail!("not wired yet")
}

/// Runs a command in a node with our own standard streams; its exit code.
pub async fn exec(
    _ctx: &Ctx,
    _cluster: &Cluster,
    _node: &Node,
    _argv: Vec<String>,
    _tty: bool,
) -> Result<i32> {
    anyhow::bail!("not wired yet")
}

/// Runs a command in a node and keeps what it prints.
pub async fn read_command(
    _ctx: &Ctx,
    _cluster: &Cluster,
    _node: &Node,
    _argv: Vec<String>,
) -> Result<Output> {
    anyhow::bail!("not wired yet")
}

/// The host's networks (links, routes, other profiles): where no new subnet may lie.
pub async fn network_in_use(_ctx: &Ctx) -> Result<Vec<Ipv4Net>> {
    anyhow::bail!("not wired yet")
}

/// What the host lacks for this driver, one line each; empty when all is there.
pub async fn missing_on_host(_ctx: &Ctx, _cluster: &Cluster) -> Result<Vec<String>> {
    Ok(Vec::new())
}

/// Where clients on the host reach the API server.
pub fn server(cluster: &Cluster) -> String {
    let host = cluster.endpoint().unwrap_or(Ipv4Addr::LOCALHOST);
    format!("https://{host}:{}", cluster.api_port)
}
