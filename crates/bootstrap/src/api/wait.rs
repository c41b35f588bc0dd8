//! The conditions of a cluster that comes up, in the order they are usually met.

use std::time::Duration;

use futures::future::try_join3;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use kube::Client;
use kube::api::{Api, ListParams};

use super::condition::{Unmet, until};
use super::error::{ApiError, call};
use super::nodes::Nodes;
use super::observe::{Health, NodeSeen, health};
use super::pods::{daemon_set_waits, deployment_waits, static_pods_wait};
use crate::addons::{COREDNS, KUBE_PROXY};

/// One look. The API server opens its port seconds before it serves, so a connection may wait.
const LOOK: Duration = Duration::from_secs(5);
const KUBE_SYSTEM: &str = "kube-system";

/// The API server answers a known user, although not everything is up: system:masters may write.
pub async fn serving(client: &Client, deadline: Duration) -> Result<Health, Unmet> {
    until("apiserver serving", deadline, || async { health(client, LOOK).await.map_err(text) }).await
}

pub async fn ready(client: &Client, deadline: Duration) -> Result<(), Unmet> {
    until("apiserver ready", deadline, || async {
        match health(client, LOOK).await.map_err(text)? {
            Health::Ready => Ok(()),
            Health::Serving => Err("/readyz answers 500".to_owned()),
        }
    })
    .await
}

pub async fn node_registered(nodes: &Nodes, node: &str, deadline: Duration) -> Result<(), Unmet> {
    until(format!("node {node} registered"), deadline, || async {
        let seen = nodes.look().await.map_err(text)?;
        if seen.contains_key(node) { Ok(()) } else { Err("no such Node".to_owned()) }
    })
    .await
}

/// Ready by word of a kubelet of this boot: what the API remembers of an earlier one is not news.
pub async fn node_ready(
    nodes: &Nodes,
    node: &str,
    boot_id: &str,
    deadline: Duration,
) -> Result<NodeSeen, Unmet> {
    until(format!("node {node} ready"), deadline, || async {
        match nodes.look().await.map_err(text)?.get(node) {
            Some(seen) if seen.ready && seen.boot_id == boot_id => Ok(seen.clone()),
            Some(seen) if seen.ready => Err("no word from its kubelet since it was booted".to_owned()),
            Some(seen) => Err(seen.message.clone()),
            None => Err("no such Node".to_owned()),
        }
    })
    .await
}

/// The kubelet tells a node's size as it is. `None`: whatever the host has.
pub async fn node_sized(
    nodes: &Nodes,
    node: &str,
    (cpus, memory_mib): (Option<u32>, Option<u32>),
    deadline: Duration,
) -> Result<(), Unmet> {
    let (cpus, memory) = (cpus.map(|n| n.to_string()), memory_mib.map(|m| u64::from(m) << 10));
    until(format!("size of node {node}"), deadline, || async {
        match nodes.look().await.map_err(text)?.get(node) {
            Some(seen)
                if cpus.as_ref().is_none_or(|c| *c == seen.cpu)
                    && memory.is_none_or(|m| Some(m) == seen.memory_kib) =>
            {
                Ok(())
            }
            Some(NodeSeen { cpu, memory_kib, .. }) => {
                Err(format!("its kubelet says {cpu} CPUs, {} KiB", memory_kib.unwrap_or(0)))
            }
            None => Err("no such Node".to_owned()),
        }
    })
    .await
}

/// Static pods of `control_planes` (machine names), kube-proxy on every node, CoreDNS available (with
/// `dns`: it needs a pod network).
pub async fn system_pods_ready(
    client: &Client,
    control_planes: &[String],
    dns: bool,
    deadline: Duration,
) -> Result<(), Unmet> {
    until("system pods ready", deadline, || system_pods_now(client, control_planes, dns)).await
}

/// One look at the same; the error says what is not ready.
pub async fn system_pods_now(client: &Client, control_planes: &[String], dns: bool) -> Result<(), String> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), KUBE_SYSTEM);
    let proxies: Api<DaemonSet> = Api::namespaced(client.clone(), KUBE_SYSTEM);
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), KUBE_SYSTEM);
    let of_control_plane = ListParams::default().labels("tier=control-plane");
    let (pods, proxy, coredns) = try_join3(
        call("list static pods", LOOK, pods.list(&of_control_plane)),
        call("look at kube-proxy", LOOK, proxies.get(KUBE_PROXY)),
        call("look at CoreDNS", LOOK, deployments.get(COREDNS)),
    )
    .await
    .map_err(text)?;
    static_pods_wait(&pods.items, control_planes)?;
    daemon_set_waits(&proxy)?;
    if dns { deployment_waits(&coredns) } else { Ok(()) }
}

/// So many pods of a DaemonSet are ready: nodes that are down have none, and are not waited for.
pub async fn daemon_set_ready(
    client: &Client,
    name: &str,
    pods: usize,
    deadline: Duration,
) -> Result<(), Unmet> {
    until(format!("{name} ready on {pods} nodes"), deadline, || async {
        let sets: Api<DaemonSet> = Api::namespaced(client.clone(), KUBE_SYSTEM);
        let set = call(format!("look at {name}"), LOOK, sets.get(name)).await.map_err(text)?;
        let ready = set.status.map_or(0, |s| s.number_ready);
        if usize::try_from(ready).is_ok_and(|r| r >= pods) {
            Ok(())
        } else {
            Err(format!("{ready} pods ready"))
        }
    })
    .await
}

/// One CoreDNS pod at least is ready.
pub async fn dns_available(client: &Client, deadline: Duration) -> Result<(), Unmet> {
    until("DNS available", deadline, || async {
        let deployments: Api<Deployment> = Api::namespaced(client.clone(), KUBE_SYSTEM);
        let dns = call("look at CoreDNS", LOOK, deployments.get_opt(COREDNS)).await.map_err(text)?;
        let ready = dns.and_then(|d| d.status).and_then(|s| s.available_replicas).unwrap_or(0);
        if ready > 0 { Ok(()) } else { Err("no CoreDNS pod is ready".to_owned()) }
    })
    .await
}

/// Pods are refused in a namespace whose service account does not exist yet.
pub async fn default_service_account(client: &Client, deadline: Duration) -> Result<(), Unmet> {
    until("default service account", deadline, || async {
        let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
        let account = call("look for service account default", LOOK, accounts.get_opt("default")).await;
        account.map_err(text)?.map(drop).ok_or_else(|| "no such ServiceAccount".to_owned())
    })
    .await
}

fn text(error: ApiError) -> String {
    error.to_string()
}
