//! What several commands need of a cluster.

use std::path::PathBuf;

use anyhow::Result;
use model::status::{self, Apiserver, Host, NodeStatus, NodeStatusInput, Session};
use model::{Cluster, Fault, Home, Node, Reason};

use crate::ctx::Ctx;
use crate::kubeconfig::{self, Credentials, Entry, Ours, document};
use crate::state::{profile, scheduled};
use crate::version::VERSION;
use crate::{core, host};

pub fn load(ctx: &Ctx) -> Result<Cluster, Fault> {
    Ok(profile::require(&ctx.home, &ctx.profile)?.cluster)
}

/// The node of that name; the primary when none is named.
pub fn node<'a>(cluster: &'a Cluster, asked: Option<&str>) -> Result<&'a Node, Fault> {
    let (found, reason, what) = match asked {
        // The first node may be gone; the profile's name still means its successor.
        Some(name) => {
            let heir = || cluster.primary().filter(|_| name == cluster.name);
            (cluster.find_node(name).or_else(heir), Reason::NodeRetrieve, format!("node {name:?}"))
        }
        None => (cluster.primary(), Reason::NoControlPlane, "control plane".to_owned()),
    };
    found.ok_or_else(|| {
        let names: Vec<String> = cluster.nodes.iter().map(|n| cluster.machine(n)).collect();
        Fault::new(reason, format!("The cluster {:?} has no {what}", cluster.name))
            .advice(format!("Its nodes are: {}", names.join(", ")))
    })
}

/// Can this host make every node that is new, or is to be another one than before?
pub fn able(before: Option<&Cluster>, after: &Cluster) -> Result<(), Fault> {
    let same = |new: &Node| {
        before.and_then(|b| Some((b, b.nodes.iter().find(|n| n.name == new.name)?))).is_some_and(
            |(b, old)| {
                old.kubernetes_version == new.kubernetes_version && b.config_of(old) == after.config_of(new)
            },
        )
    };
    after.nodes.iter().filter(|n| !same(n)).try_for_each(|node| core::able(after, node))
}

/// Refuses when no control plane's machine runs.
pub async fn require_running(ctx: &Ctx, cluster: &Cluster) -> Result<Vec<NodeStatusInput>> {
    node(cluster, None)?;
    let seen = core::observe(ctx, cluster).await?;
    let planes = || cluster.nodes.iter().zip(&seen).filter(|(n, _)| n.control_plane);
    if !planes().any(|(_, s)| s.host == Host::Running) {
        let word = planes().next().map_or("Nonexistent", |(_, s)| s.host.as_str());
        return Err(not_running(&cluster.name, word).into());
    }
    Ok(seen)
}

pub fn not_running(machine: &str, word: &str) -> Fault {
    Fault::new(
        Reason::HostNotRunning,
        format!("The control-plane node {machine} host is not running: state={word}"),
    )
}

pub fn node_not_running(cluster: &Cluster, node: &Node, state: Host) -> Fault {
    let role = if node.control_plane { "control-plane" } else { "worker" };
    let message =
        format!("The {role} node {} host is not running: state={}", cluster.machine(node), state.as_str());
    Fault::new(Reason::HostNotRunning, message)
}

/// Refuses when this node's machine does not run; `seen` is in the order of the cluster's nodes.
pub fn require_node(cluster: &Cluster, node: &Node, seen: &[NodeStatusInput]) -> Result<(), Fault> {
    let index = cluster.nodes.iter().position(|n| n == node);
    match index.and_then(|i| seen.get(i)).filter(|s| s.host != Host::Running) {
        Some(seen) => Err(node_not_running(cluster, node, seen.host)),
        None => Ok(()),
    }
}

/// Of a cluster whose API answers.
pub async fn healthy_client(ctx: &Ctx, cluster: &Cluster) -> Result<kube::Client> {
    require_healthy(ctx, cluster).await?;
    let message = format!("There is no certificate for the cluster \"{}\"", cluster.name);
    Ok(core::client(ctx, cluster).ok_or_else(|| Fault::new(Reason::K8sClient, message))?)
}

/// Nodes come and go in a cluster whose API answers.
pub async fn require_healthy(ctx: &Ctx, cluster: &Cluster) -> Result<()> {
    let seen = require_running(ctx, cluster).await?;
    if seen.iter().any(|s| s.apiserver == Apiserver::Running) {
        return Ok(());
    }
    if seen.iter().any(|s| s.apiserver == Apiserver::Paused) {
        let message = format!("The cluster \"{}\" is paused", cluster.name);
        return Err(Fault::new(Reason::ApiserverNotRunning, message)
            .advice(format!("Run '{}' first", ctx.hint("unpause")))
            .into());
    }
    let message = format!("The API server of the cluster \"{}\" does not answer", cluster.name);
    Err(Fault::new(Reason::ApiserverNotRunning, message).into())
}

pub async fn statuses(ctx: &Ctx, cluster: &Cluster) -> Result<Vec<NodeStatus>> {
    let seen = core::observe(ctx, cluster).await?;
    // A kubeconfig that cannot be read does not point to us.
    let doc = kubeconfig::read(&kubeconfig_path()).unwrap_or_default();
    let state = document::state(&doc, &cluster.name, &core::server(ctx, cluster));
    let mut nodes = status::of_cluster(cluster, &seen, state);
    let session = session(ctx, &cluster.name);
    nodes.iter_mut().filter(|n| !n.worker && n.host == "Running").for_each(|n| n.session = session.clone());
    super::fault::add_to_status(ctx, &cluster.name, &mut nodes);
    Ok(nodes)
}

/// What this shell and a scheduled stop say about a profile.
fn session(ctx: &Ctx, name: &str) -> Session {
    let config = profile::load(&ctx.home, name).ok().flatten().map(|f| f.raw).unwrap_or_default();
    let in_use = |variable: &str| {
        let active = host::env(variable).is_some_and(|profile| profile == name);
        if active { "in-use".to_owned() } else { String::new() }
    };
    Session {
        time_to_stop: scheduled::time_to_stop(&ctx.home, name, &config).unwrap_or_default(),
        docker_env: in_use("MINIKUBE_ACTIVE_DOCKERD"),
        podman_env: in_use("MINIKUBE_ACTIVE_PODMAN"),
    }
}

pub fn kubeconfig_path() -> PathBuf {
    kubeconfig::path(&host::env)
}

fn update_failed(e: anyhow::Error) -> Fault {
    Fault::new(Reason::KubeconfigUpdate, format!("Failed to update kubeconfig: {e:#}"))
        .advice("Mend the file, or name another one in KUBECONFIG")
}

/// How entries of this home are known.
fn ours(home: &Home, name: &str) -> Ours {
    let (home, dir) = (home.root(), home.profile(name));
    let certificates = [home.join("ca.crt"), dir.join("ca.crt"), dir.join("client.crt")];
    Ours {
        homes: [Some(home.to_owned()), home.canonicalize().ok()].into_iter().flatten().collect(),
        certificates: certificates.iter().filter_map(|f| std::fs::read(f).ok()).map(|c| base64(&c)).collect(),
    }
}

/// Refuses a name that has entries in the kubeconfig which are not this home's. A file that cannot be read has none.
pub fn check_kubeconfig(home: &Home, name: &str) -> Result<(), Fault> {
    let doc = kubeconfig::read(&kubeconfig_path()).unwrap_or_default();
    if ours(home, name).look(&doc, name).is_anothers() { Err(taken(name)) } else { Ok(()) }
}

fn taken(name: &str) -> Fault {
    let file = kubeconfig_path();
    let message = format!(
        "The kubeconfig {} has a context, cluster or user \"{name}\" already, which is not this home's and stays as it is",
        file.display()
    );
    Fault::new(Reason::KubeconfigUpdate, message).advice(format!(
        "Choose another name with -p, or rename what is there: kubectl config rename-context {name} NEW-NAME, and cluster and user in the file"
    ))
}

/// Points kubectl to the cluster; whether anything had to be changed. What is not ours is refused.
pub fn write_kubeconfig(ctx: &Ctx, cluster: &Cluster, current: bool) -> Result<bool, Fault> {
    let entry = entry(ctx, cluster).map_err(update_failed)?;
    let (ours, name) = (ours(&ctx.home, &cluster.name), &cluster.name);
    let mut anothers = false;
    let written = kubeconfig::edit(&kubeconfig_path(), |doc| {
        anothers = ours.look(doc, name).is_anothers();
        let wrong = !anothers && !document::is_set(doc, &entry, current);
        if wrong {
            document::set(doc, &entry, current);
        }
        wrong
    });
    let written = written.map_err(update_failed)?;
    if anothers { Err(taken(name)) } else { Ok(written) }
}

/// Has the kubeconfig entries of this cluster, which are ours?
pub fn is_in_kubeconfig(home: &Home, doc: &serde_json::Value, name: &str) -> bool {
    let owned = ours(home, name).look(doc, name);
    owned.cluster.is_some() && !owned.is_anothers()
}

/// The API's address changes when the second control plane comes or goes. Entries that are not ours stay.
pub fn point_kubeconfig(ctx: &Ctx, before: &Cluster, after: &Cluster) -> Result<(), Fault> {
    let moved = core::server(ctx, before) != core::server(ctx, after);
    if moved && check_kubeconfig(&ctx.home, &after.name).is_ok() {
        write_kubeconfig(ctx, after, false)?;
    }
    Ok(())
}

fn entry(ctx: &Ctx, cluster: &Cluster) -> Result<Entry> {
    let dir = ctx.home.profile(&cluster.name);
    let ca = bootstrap::pki::authority::certificate_of(&ctx.home, &cluster.name);
    let files = [ca, dir.join("client.crt"), dir.join("client.key")];
    // Who calls us by sudo reads the kubeconfig as somebody who may not read our files.
    let sudo = host::env("SUDO_UID").is_some_and(|uid| uid != "0");
    let credentials = if cluster.embed_certs || sudo {
        let [ca, cert, key] = files.map(|f| fs_err::read(f).map(|data| base64(&data)));
        Credentials::Embedded { ca: ca?, cert: cert?, key: key? }
    } else {
        let [ca, cert, key] = files.map(|f| f.display().to_string());
        Credentials::Files { ca, cert, key }
    };
    Ok(Entry {
        name: cluster.name.clone(),
        server: core::server(ctx, cluster),
        namespace: cluster.namespace.clone(),
        credentials,
        // By the one name that does not change with the way to it.
        home: ctx.home.root().canonicalize()?.display().to_string(),
        now: jiff::Zoned::now().strftime("%a, %d %b %Y %H:%M:%S %Z").to_string(),
        version: VERSION.to_owned(),
    })
}

/// Removes what `write_kubeconfig` added, and nothing else. A file that cannot be read is left alone and reported.
pub fn remove_from_kubeconfig(home: &Home, profile: &str) -> Result<bool, Fault> {
    let path = kubeconfig_path();
    if !path.exists() {
        return Ok(false);
    }
    let ours = ours(home, profile);
    kubeconfig::edit(&path, |doc| document::remove(doc, profile, &ours)).map_err(update_failed)
}

fn base64(data: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(data.len().div_ceil(3) * 4);
    for chunk in data.chunks(3) {
        let group = chunk.iter().fold(0u32, |g, b| g << 8 | u32::from(*b)) << (8 * (3 - chunk.len()));
        for i in 0..4 {
            let sextet = (group >> (18 - 6 * i)) & 63;
            out.push(if i <= chunk.len() { char::from(ALPHABET[sextet as usize]) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_of_rfc_4648() {
        for (data, want) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(base64(data.as_bytes()), want);
        }
    }
}
