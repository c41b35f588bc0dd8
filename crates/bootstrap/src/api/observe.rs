//! One look at the cluster, for the planner and for `status`.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::try_join;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{Api, ListParams};
use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;

use super::error::{ApiError, call};
use crate::addons::{COREDNS, KUBE_PROXY, STORAGE_CLASS};

const KUBE_SYSTEM: &str = "kube-system";

/// What `/readyz` says to somebody who is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// Answers known users; what needs RBAC is still refused.
    Serving,
    Ready,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeSeen {
    pub ready: bool,
    /// Of the boot that its kubelet last spoke in.
    pub boot_id: String,
    /// Why it is not ready, in the kubelet's words.
    pub message: String,
    pub pod_cidr: Option<String>,
    pub labels: BTreeMap<String, String>,
    pub kubelet_version: String,
    /// What the kubelet says of its size.
    pub cpu: String,
    pub memory_kib: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AddonsSeen {
    /// kubeadm's own configuration is uploaded (`finish_commands` have run).
    pub kubeadm: bool,
    pub kube_proxy: bool,
    pub coredns: bool,
    pub storage: bool,
}

impl AddonsSeen {
    pub fn all(self) -> bool {
        self.kubeadm && self.kube_proxy && self.coredns && self.storage
    }
}

pub async fn health(client: &Client, deadline: Duration) -> Result<Health, ApiError> {
    let tried = "GET /readyz";
    let request =
        http::Request::get("/readyz").body(Vec::new()).map_err(|e| ApiError::new(tried, e.to_string()))?;
    let answer = tokio::time::timeout(deadline, client.request_text(request)).await;
    match answer {
        Ok(Ok(_)) => Ok(Health::Ready),
        // Only somebody who passed authentication is told that a check has failed.
        Ok(Err(kube::Error::Api(status))) if status.code == 500 => Ok(Health::Serving),
        Ok(Err(error)) => Err(ApiError::new(tried, super::error::why(&error))),
        Err(_) => Err(ApiError::new(tried, format!("no answer within {} s", deadline.as_secs_f32()))),
    }
}

/// All nodes, by name.
pub async fn observe_nodes(
    client: &Client,
    deadline: Duration,
) -> Result<BTreeMap<String, NodeSeen>, ApiError> {
    let nodes: Api<Node> = Api::all(client.clone());
    let list = call("look at the nodes", deadline, nodes.list(&ListParams::default())).await?;
    Ok(list.items.into_iter().map(|node| (node.name_any(), seen(node))).collect())
}

fn seen(node: Node) -> NodeSeen {
    let labels = node.labels().clone();
    let status = node.status.unwrap_or_default();
    let info = status.node_info.unwrap_or_default();
    let capacity = status.capacity.unwrap_or_default();
    let amount = |of: &str| capacity.get(of).map(|q| q.0.clone()).unwrap_or_default();
    let condition = status.conditions.unwrap_or_default().into_iter().find(|c| c.type_ == "Ready");
    NodeSeen {
        ready: condition.as_ref().is_some_and(|c| c.status == "True"),
        boot_id: info.boot_id,
        message: condition.and_then(|c| c.message).unwrap_or_else(|| "no status from its kubelet yet".into()),
        pod_cidr: node.spec.and_then(|s| s.pod_cidr),
        labels,
        cpu: amount("cpu"),
        memory_kib: kib(&amount("memory")),
        kubelet_version: info.kubelet_version,
    }
}

/// A quantity as the API writes it: the largest unit that leaves a whole number.
fn kib(quantity: &str) -> Option<u64> {
    let digits = quantity.trim_end_matches(|c: char| !c.is_ascii_digit());
    let number: u64 = digits.parse().ok()?;
    match &quantity[digits.len()..] {
        "" => Some(number >> 10),
        "Ki" => Some(number),
        "Mi" => number.checked_shl(10),
        "Gi" => number.checked_shl(20),
        "Ti" => number.checked_shl(30),
        _ => None,
    }
}

pub async fn addons_present(client: &Client, deadline: Duration) -> Result<AddonsSeen, ApiError> {
    let kubeadm =
        exists::<ConfigMap>(Api::namespaced(client.clone(), KUBE_SYSTEM), "kubeadm-config", deadline);
    let proxy = exists::<DaemonSet>(Api::namespaced(client.clone(), KUBE_SYSTEM), KUBE_PROXY, deadline);
    let dns = exists::<Deployment>(Api::namespaced(client.clone(), KUBE_SYSTEM), COREDNS, deadline);
    let storage = exists::<StorageClass>(Api::all(client.clone()), STORAGE_CLASS, deadline);
    let ((kubeadm, kube_proxy), (coredns, storage)) =
        try_join(try_join(kubeadm, proxy), try_join(dns, storage)).await?;
    Ok(AddonsSeen { kubeadm, kube_proxy, coredns, storage })
}

async fn exists<K>(api: Api<K>, name: &str, deadline: Duration) -> Result<bool, ApiError>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    let what = format!("look for {} {name}", K::kind(&()));
    Ok(call(what, deadline, api.get_metadata_opt(name)).await?.is_some())
}

#[cfg(test)]
mod tests {
    #[test]
    fn quantities() {
        let of = |text| super::kib(text);
        assert_eq!(
            ["2048", "1500Mi", "3Gi", "1536001Ki", "", "x", "5m"].map(of),
            [Some(2), Some(1_536_000), Some(3 << 20), Some(1_536_001), None, None, None]
        );
    }
}
