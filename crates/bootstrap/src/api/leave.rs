//! A node leaves: its pods go elsewhere, then the API forgets it.

use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, DeleteParams, EvictParams, ListParams, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde_json::json;

use super::condition::{Unmet, until};
use super::error::{call, why};

/// One call; a control plane that is losing a member may take a moment.
const LOOK: Duration = Duration::from_secs(5);
const MIRROR: &str = "kubernetes.io/config.mirror";
/// A pod on a node that goes has the time that it asks for to end itself, but not longer than this.
const LONGEST_GRACE: u32 = 25;

/// Cordons the node and evicts what can live elsewhere. An eviction that a disruption budget refuses
/// is asked for again until `deadline`.
pub async fn drain(client: &Client, node: &str, deadline: Duration) -> Result<(), Unmet> {
    let nodes: Api<Node> = Api::all(client.clone());
    let cordon = Patch::Merge(json!({ "spec": { "unschedulable": true } }));
    until(format!("node {node} drained"), deadline, || async {
        match nodes.patch_metadata(node, &PatchParams::default(), &cordon).await {
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
            other => other.map_err(|e| why(&e))?,
        };
        let pods = pods_on(client, node).await?;
        let movable: Vec<&Pod> = pods.iter().filter(|p| is_movable(p)).collect();
        let refusals = join_all(movable.iter().map(|pod| evict(client, pod))).await;
        match (movable.len(), refusals.into_iter().flatten().next()) {
            (0, _) => Ok(()),
            (_, Some(refused)) => Err(refused),
            (left, None) => Err(format!("{left} pods are still there")),
        }
    })
    .await
}

async fn pods_on(client: &Client, node: &str) -> Result<Vec<Pod>, String> {
    let pods: Api<Pod> = Api::all(client.clone());
    let here = ListParams::default().fields(&format!("spec.nodeName={node}"));
    Ok(call("list the node's pods", LOOK, pods.list(&here)).await.map_err(|e| e.to_string())?.items)
}

/// Neither the kubelet's own nor one that a DaemonSet would put back at once.
fn is_movable(pod: &Pod) -> bool {
    let ended = pod.status.as_ref().and_then(|s| s.phase.as_deref());
    !pod.annotations().contains_key(MIRROR)
        && !pod.owner_references().iter().any(|o| o.kind == "DaemonSet")
        && !matches!(ended, Some("Succeeded" | "Failed"))
}

async fn evict(client: &Client, pod: &Pod) -> Option<String> {
    if pod.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let pods: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace()?);
    let delete_options =
        Some(DeleteParams { grace_period_seconds: Some(grace(pod)), ..DeleteParams::default() });
    let params = EvictParams { delete_options, ..EvictParams::default() };
    match pods.evict(&pod.name_any(), &params).await {
        Ok(_) => None,
        Err(kube::Error::Api(status)) if status.code == 404 => None,
        Err(e) => Some(why(&e)),
    }
}

fn grace(pod: &Pod) -> u32 {
    let asked = pod.spec.as_ref().and_then(|s| s.termination_grace_period_seconds);
    asked.and_then(|seconds| u32::try_from(seconds).ok()).map_or(LONGEST_GRACE, |s| s.min(LONGEST_GRACE))
}

/// The Node, the pods that no kubelet runs any more, and the leases that no controller would renew.
pub async fn delete_node(client: &Client, node: &str, deadline: Duration) -> Result<(), Unmet> {
    let nodes: Api<Node> = Api::all(client.clone());
    until(format!("node {node} removed"), deadline, || async {
        // First, or a DaemonSet would put its pod there once more.
        gone(nodes.delete(node, &DeleteParams::default()).await.map(drop))?;
        for pod in pods_on(client, node).await? {
            let pods: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
            let at_once = DeleteParams::default().grace_period(0);
            gone(pods.delete(&pod.name_any(), &at_once).await.map(drop))?;
        }
        free_leases(client, node).await
    })
    .await
}

/// A controller that ended with its machine keeps the others waiting for 15 s.
async fn free_leases(client: &Client, node: &str) -> Result<(), String> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), "kube-system");
    for name in super::act::LEASES {
        let lease = call("look at a lease", LOOK, leases.get_opt(name)).await.map_err(|e| e.to_string())?;
        let holder = lease.and_then(|l| l.spec).and_then(|s| s.holder_identity).unwrap_or_default();
        if holder.strip_prefix(node).is_some_and(|rest| rest.starts_with('_')) {
            gone(leases.delete(name, &DeleteParams::default()).await.map(drop))?;
        }
    }
    Ok(())
}

fn gone(result: kube::Result<()>) -> Result<(), String> {
    match result {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        other => other.map_err(|e| why(&e)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    #[test]
    fn a_pod_has_the_time_it_asks_for() {
        let pod = |spec: Value| from_value::<Pod>(json!({ "metadata": {}, "spec": spec })).unwrap();
        let of = |spec: Value| grace(&pod(spec));
        assert_eq!(of(json!({ "containers": [], "terminationGracePeriodSeconds": 7 })), 7);
        assert_eq!(of(json!({ "containers": [], "terminationGracePeriodSeconds": 600 })), LONGEST_GRACE);
        assert_eq!(of(json!({ "containers": [] })), LONGEST_GRACE);
    }

    #[test]
    fn what_can_live_elsewhere() {
        let pod = |metadata: Value, phase: &str| -> Pod {
            from_value(json!({ "metadata": metadata, "status": { "phase": phase } })).unwrap()
        };
        let owned = |kind: &str| json!({ "name": "x", "ownerReferences": [{ "apiVersion": "apps/v1", "kind": kind, "name": "x", "uid": "1" }] });
        assert!(is_movable(&pod(owned("ReplicaSet"), "Running")));
        assert!(is_movable(&pod(json!({ "name": "alone" }), "Pending")));
        assert!(!is_movable(&pod(owned("DaemonSet"), "Running")));
        assert!(!is_movable(&pod(json!({ "annotations": { MIRROR: "x" } }), "Running")));
        assert!(!is_movable(&pod(owned("Job"), "Succeeded")));
    }
}
