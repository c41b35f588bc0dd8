//! The few things we do to a cluster besides applying objects.

use std::time::Duration;

use ipnet::Ipv4Net;
use jiff::tz::TimeZone;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::condition::until;
use super::error::{ApiError, Patience, call, why};

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

/// Labels a node and gives it its pod range, which the API server takes once: a node keeps it for life.
/// A connection that breaks is tried again (the virtual address may move while nodes come); a refusal
/// is final.
pub async fn adopt_node(
    client: &Client,
    node: &str,
    labels: &NodeLabels,
    pods: Ipv4Net,
    deadline: Duration,
) -> anyhow::Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    let params = PatchParams::default();
    let patch = Patch::Merge(json!({
        "metadata": { "labels": labels.to_json() },
        "spec": { "podCIDR": pods, "podCIDRs": [pods] },
    }));
    let condition = format!("node {node} labelled");
    let patience = Patience::default();
    let answer = until(condition, deadline, || async {
        let limit = patience.get();
        patience.learn(false);
        match timeout(limit, nodes.patch_metadata(node, &params, &patch)).await {
            Ok(Ok(_)) => Ok(Ok(())),
            Ok(Err(kube::Error::Api(status))) if is_final(status.code) => {
                let why = why(&kube::Error::Api(status));
                Ok(Err(ApiError::new(format!("label node {node}"), why)))
            }
            Ok(Err(error)) => Err(why(&error)),
            Err(_) => Err("no answer".to_owned()),
        }
    });
    Ok(answer.await??)
}

/// The request itself is wrong: it would be so again.
fn is_final(code: u16) -> bool {
    (400..500).contains(&code) && ![401, 403, 404, 408, 409, 429].contains(&code)
}

/// After a cold restart the leases still name holders that died: the new ones would wait 15 s.
/// A holder that lives renews every 2 s and keeps its lease.
pub async fn delete_stale_leases(client: &Client, deadline: Duration) -> Result<(), ApiError> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), "kube-system");
    for name in LEASES {
        let lease = call(format!("look at lease {name}"), deadline, leases.get_opt(name)).await?;
        let renewed = lease.and_then(|l| l.spec).and_then(|s| s.renew_time);
        if renewed.is_none_or(|t| jiff::Timestamp::now().duration_since(t.0).as_secs() < ALIVE_SECS) {
            continue;
        }
        let gone = async {
            match leases.delete(name, &DeleteParams::default()).await {
                Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
                other => other.map(drop),
            }
        };
        call(format!("delete lease {name}"), deadline, gone).await?;
    }
    Ok(())
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
