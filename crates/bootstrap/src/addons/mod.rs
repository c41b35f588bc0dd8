//! The objects a cluster starts with: kubeadm's own kube-proxy and CoreDNS, a little changed, and
//! a default StorageClass.

pub mod catalogue;
mod coredns;
mod kube_proxy;
pub mod registry;
mod storage;

use anyhow::{Context, Result, ensure};
use model::Cluster;
use serde_json::Value;

use crate::yaml;

pub const COREDNS: &str = "coredns";
pub const KUBE_PROXY: &str = "kube-proxy";
pub const STORAGE_NAMESPACE: &str = "local-path-storage";
pub const STORAGE_PROVISIONER: &str = "local-path-provisioner";
pub const STORAGE_CLASS: &str = "standard";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddonOptions {
    /// CoreDNS logs each query (minikube does unless told otherwise).
    pub dns_log: bool,
    /// `None` leaves the default StorageClass out.
    pub storage: Option<StorageImages>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorageImages {
    /// `docker.io/rancher/local-path-provisioner:v0.0.30`
    pub provisioner: String,
    /// `docker.io/library/busybox:1.37`
    pub helper: String,
}

/// What to apply, from the output of [`crate::addon_manifest_command`].
pub fn objects(cluster: &Cluster, kubeadm_output: &str, options: &AddonOptions) -> Result<Vec<Value>> {
    let mut objects = kubeadm_objects(kubeadm_output)?;
    for object in &mut objects {
        strip_server_fields(object);
        if is(object, "Deployment", COREDNS) {
            coredns::change_deployment(object, if cluster.is_ha() { 2 } else { 1 })?;
        }
        if is(object, "DaemonSet", KUBE_PROXY) {
            kube_proxy::prefer_the_nodes_own(object)?;
        }
        if is(object, "ConfigMap", COREDNS) {
            coredns::change_config(object, cluster.gateway(), options.dns_log)?;
        }
    }
    for (kind, name) in [("Deployment", COREDNS), ("ConfigMap", COREDNS), ("DaemonSet", KUBE_PROXY)] {
        ensure!(objects.iter().any(|o| is(o, kind, name)), "kubeadm printed no {kind} {name}");
    }
    if let Some(images) = &options.storage {
        objects.extend(storage::objects(images)?);
    }
    Ok(objects)
}

/// kubeadm's print is not quite YAML: it says on the same stream that it read its patches (lines
/// that start with `[`), and a patched object begins on the line of its `---`.
fn kubeadm_objects(output: &str) -> Result<Vec<Value>> {
    let mut text = String::new();
    for line in output.lines().filter(|l| !l.starts_with('[')) {
        match line.strip_prefix("---") {
            Some(rest) => text.push_str(&format!("---\n{rest}\n")),
            None => text.push_str(&format!("{line}\n")),
        }
    }
    yaml::from_documents(&text).context("read the addons that kubeadm printed")
}

fn is(object: &Value, kind: &str, name: &str) -> bool {
    object["kind"] == kind && object["metadata"]["name"] == name
}

/// Fields that an apply must not name: kubeadm's Service carries a resourceVersion.
fn strip_server_fields(object: &mut Value) {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("resourceVersion");
        metadata.remove("creationTimestamp");
    }
    if let Some(object) = object.as_object_mut() {
        object.remove("status");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    /// What `addon_manifest_command` printed in a node of v1.37.1.
    const PRINTED: &str = include_str!("testdata/kubeadm-v1.37.1.txt");

    fn applied(control_planes: u32) -> Vec<Value> {
        let options = AddonOptions { dns_log: true, storage: None };
        objects(&fixture::cluster(control_planes, 0), PRINTED, &options).unwrap()
    }

    #[test]
    fn kubeadms_objects_with_our_changes() {
        insta::assert_snapshot!(yaml::to_documents(&applied(1)).unwrap());
    }

    #[test]
    fn two_name_servers_when_one_may_fail() {
        let replicas = |objects: Vec<Value>| {
            objects.iter().find(|o| is(o, "Deployment", COREDNS)).unwrap()["spec"]["replicas"].clone()
        };
        assert_eq!(replicas(applied(1)), 1);
        assert_eq!(replicas(applied(3)), 2);
    }

    #[test]
    fn half_a_print_is_an_error() {
        let half = &PRINTED[..PRINTED.find("name: coredns").unwrap()];
        let options = AddonOptions { dns_log: true, storage: None };
        assert!(objects(&fixture::cluster(1, 0), half, &options).is_err());
        let error = objects(&fixture::cluster(1, 0), "", &options).unwrap_err();
        assert_eq!(error.to_string(), "kubeadm printed no Deployment coredns");
    }
}
