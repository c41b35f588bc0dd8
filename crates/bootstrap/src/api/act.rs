//! The few things we do to a cluster besides applying objects.

use std::time::Duration;

use ipnet::Ipv4Net;
use jiff::tz::TimeZone;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use super::condition::{Unmet, until};
use super::error::{ApiError, why};

/// Twice as long as a holder takes to renew its lease.
const ALIVE_SECS: i64 = 4;
pub(super) const LEASES: [&str; 2] = ["kube-controller-manager", "kube-scheduler"];

/// minikube's labels, on every node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeLabels {
    pub profile: String,
    /// Of the tool: `v0.1.0`.
    pub version: String,
    pub commit: String,
    pub updated_at: jiff::Timestamp,
    pub primary: bool,
    /// Has kubeadm's label of control planes (kubeadm itself gives it to the first one only).
    pub control_plane: bool,
}

impl NodeLabels {
    fn to_json(&self) -> Value {
        let time = self.updated_at.to_zoned(TimeZone::UTC).strftime("%Y_%m_%dT%H_%M_%S_%z").to_string();
        let mut labels = json!({
            "minikube.k8s.io/name": self.profile,
            "minikube.k8s.io/version": self.version,
            "minikube.k8s.io/commit": self.commit,
            // A label may hold no colon and no plus sign.
            "minikube.k8s.io/updated_at": time.replace('+', ""),
            "minikube.k8s.io/primary": self.primary.to_string(),
        });
        if self.control_plane {
            labels["node-role.kubernetes.io/control-plane"] = json!("");
            labels["node.kubernetes.io/exclude-from-external-load-balancers"] = json!("");
        }
        labels
    }
}

pub async fn label_node(
    client: &Client,
    node: &str,
    labels: &NodeLabels,
    deadline: Duration,
) -> Result<(), ApiError> {
    patch_node(client, node, "label", json!({ "metadata": { "labels": labels.to_json() } }), deadline).await
}

/// The API server takes this once: a node keeps its range for life.
pub async fn set_pod_cidr(
    client: &Client,
    node: &str,
    cidr: Ipv4Net,
    deadline: Duration,
) -> Result<(), ApiError> {
    let patch = json!({ "spec": { "podCIDR": cidr, "podCIDRs": [cidr] } });
    patch_node(client, node, "set the pod range of", patch, deadline).await
}

async fn patch_node(
    client: &Client,
    node: &str,
    verb: &str,
    patch: Value,
    deadline: Duration,
) -> Result<(), ApiError> {
    let nodes: Api<Node> = Api::all(client.clone());
    let params = PatchParams::default();
    let patch = Patch::Merge(patch);
    let tried = format!("{verb} node {node}");
    // A young API server may let a call hang or drop it: it is asked again, unless it has said no.
    let answer = until(&tried, deadline, || async {
        match nodes.patch_metadata(node, &params, &patch).await {
            Err(kube::Error::Api(status)) if status.code == INVALID => Ok(Err(status.message)),
            other => other.map(|_| Ok(())).map_err(|e| why(&e)),
        }
    });
    let refused = |why: String| ApiError::new(&tried, why);
    answer.await.map_err(|unmet| refused(unmet.to_string()))?.map_err(refused)
}

/// HTTP's "unprocessable": what is asked for is wrong and stays so.
const INVALID: u16 = 422;

/// After a cold restart the leases still name holders that died: the new ones would wait 15 s.
/// A holder that lives renews every 2 s and keeps its lease.
pub async fn delete_stale_leases(client: &Client, deadline: Duration) -> Result<(), Unmet> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), "kube-system");
    for name in LEASES {
        until(format!("lease {name} free"), deadline, || delete_if_stale(&leases, name)).await?;
    }
    Ok(())
}

async fn delete_if_stale(leases: &Api<Lease>, name: &str) -> Result<(), String> {
    let lease = leases.get_opt(name).await.map_err(|e| why(&e))?;
    let renewed = lease.and_then(|l| l.spec).and_then(|s| s.renew_time);
    if renewed.is_none_or(|t| jiff::Timestamp::now().duration_since(t.0).as_secs() < ALIVE_SECS) {
        return Ok(());
    }
    match leases.delete(name, &DeleteParams::default()).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        other => other.map(drop).map_err(|e| why(&e)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_minikubes() {
        let labels = NodeLabels {
            profile: "demo".into(),
            version: "v0.1.0".into(),
            commit: "abc".into(),
            updated_at: jiff::Timestamp::from_second(1_794_700_800).unwrap(),
            primary: true,
            control_plane: false,
        };
        insta::assert_snapshot!(serde_json::to_string_pretty(&labels.to_json()).unwrap());
    }
}
