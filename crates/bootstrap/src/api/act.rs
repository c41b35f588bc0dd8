//! The few things we do to a cluster besides applying objects.

use std::collections::BTreeMap;
use std::time::Duration;

use ipnet::Ipv4Net;
use jiff::tz::TimeZone;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Taint as KubeTaint};
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use model::node_config::Taint;
use serde_json::{Map, Value, json};

use super::error::ApiError;
use super::insist::insist;

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

/// What the user wants on a node, and wanted until now: only that is taken away again.
#[derive(Debug, Clone, Default)]
pub struct Wishes {
    pub labels: BTreeMap<String, String>,
    pub taints: Vec<Taint>,
    pub old_labels: BTreeMap<String, String>,
    pub old_taints: Vec<Taint>,
}

impl Wishes {
    fn labels(&self, ours: &NodeLabels) -> Value {
        let mut labels = Map::new();
        labels.extend(self.old_labels.keys().map(|key| (key.clone(), Value::Null)));
        if let Value::Object(ours) = ours.to_json() {
            labels.extend(ours);
        }
        labels.extend(self.labels.iter().map(|(key, value)| (key.clone(), json!(value))));
        labels.into()
    }

    /// `None` when the node has what it should. Taints of others, like the kubelet's, stay.
    fn taints(&self, there: &[KubeTaint]) -> Option<Vec<KubeTaint>> {
        let is = |t: &KubeTaint, own: &Taint| t.key == own.key && t.effect == own.effect.as_str();
        let ours = |t: &KubeTaint| self.old_taints.iter().chain(&self.taints).any(|own| is(t, own));
        let mut taints: Vec<KubeTaint> = there.iter().filter(|t| !ours(t)).cloned().collect();
        taints.extend(self.taints.iter().map(|own| KubeTaint {
            key: own.key.clone(),
            value: Some(own.value.clone()).filter(|v| !v.is_empty()),
            effect: own.effect.as_str().to_owned(),
            time_added: there.iter().find(|t| is(t, own)).and_then(|t| t.time_added.clone()),
        }));
        let same = taints.len() == there.len() && taints.iter().all(|t| there.contains(t));
        (!same).then_some(taints)
    }
}

/// Labels a node and gives it its pod range, which the API server takes once: a node keeps it for life.
/// A connection that breaks is tried again (the virtual address may move while nodes come); a refusal
/// is final.
pub async fn adopt_node(
    client: &Client,
    node: &str,
    labels: &NodeLabels,
    wishes: &Wishes,
    pods: Ipv4Net,
    deadline: Duration,
) -> Result<(), ApiError> {
    let nodes: Api<Node> = Api::all(client.clone());
    let params = PatchParams::default();
    let adopt = || async {
        let mut patch = json!({
            "metadata": { "labels": wishes.labels(labels) },
            "spec": { "podCIDR": pods, "podCIDRs": [pods] },
        });
        if !wishes.taints.is_empty() || !wishes.old_taints.is_empty() {
            let node = nodes.get(node).await?;
            let there = node.spec.and_then(|s| s.taints).unwrap_or_default();
            if let Some(taints) = wishes.taints(&there) {
                // The list goes as a whole: who changed it in between is heard by trying again.
                patch["spec"]["taints"] = json!(taints);
                patch["metadata"]["resourceVersion"] = json!(node.metadata.resource_version);
            }
        }
        nodes.patch_metadata(node, &params, &Patch::Merge(patch)).await
    };
    insist(format!("label node {node}"), deadline, adopt).await.map(drop)
}

/// After a cold restart the leases still name holders that died: the new ones would wait 15 s.
/// A holder that lives renews every 2 s and keeps its lease.
pub async fn delete_stale_leases(client: &Client, deadline: Duration) -> Result<(), ApiError> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), "kube-system");
    for name in LEASES {
        let lease = insist(format!("look at lease {name}"), deadline, || leases.get_opt(name)).await?;
        let renewed = lease.and_then(|l| l.spec).and_then(|s| s.renew_time);
        if renewed.is_none_or(|t| jiff::Timestamp::now().duration_since(t.0).as_secs() < ALIVE_SECS) {
            continue;
        }
        let gone = || async {
            match leases.delete(name, &DeleteParams::default()).await {
                Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
                other => other.map(drop),
            }
        };
        insist(format!("delete lease {name}"), deadline, gone).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wishes_come_and_go() {
        let taint = |text: &str| text.parse::<Taint>().unwrap();
        let in_api = |key: &str, value: Option<&str>, effect: &str| KubeTaint {
            key: key.into(),
            value: value.map(Into::into),
            effect: effect.into(),
            time_added: None,
        };
        let there = [
            in_api("node.kubernetes.io/not-ready", None, "NoSchedule"),
            in_api("gpu", Some("no"), "NoSchedule"),
        ];
        let mut wishes = Wishes { taints: vec![taint("gpu=yes:NoSchedule")], ..Wishes::default() };
        let after = wishes.taints(&there).unwrap();
        assert_eq!(after, [there[0].clone(), in_api("gpu", Some("yes"), "NoSchedule")]);
        assert_eq!(wishes.taints(&after), None);
        wishes = Wishes { old_taints: wishes.taints, ..Wishes::default() };
        assert_eq!(wishes.taints(&after).unwrap(), there[..1]);

        let ours = NodeLabels {
            profile: "demo".into(),
            version: "v0.1.0".into(),
            commit: "abc".into(),
            updated_at: jiff::Timestamp::UNIX_EPOCH,
            primary: false,
            control_plane: false,
        };
        wishes.old_labels = [("a".into(), "1".into()), ("b".into(), "1".into())].into();
        wishes.labels = [("b".into(), "2".into())].into();
        let labels = wishes.labels(&ours);
        assert_eq!((&labels["a"], &labels["b"]), (&Value::Null, &json!("2")));
        assert_eq!(labels["minikube.k8s.io/name"], "demo");
    }

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
