//! kubeadm patches for its static pods.

use anyhow::Result;
use model::node_spec::NodeFile;
use serde_json::json;

use crate::{paths, yaml};

const COMPONENTS: [&str; 4] = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"];

/// kubeadm's startup probes wait 10 s before their first look and 10 s between two, so that a pod
/// which runs after 2 s is Ready after 10 or 20. The number of tries keeps kubeadm's four minutes.
pub fn files() -> Result<Vec<NodeFile>> {
    COMPONENTS.into_iter().map(patch).collect()
}

fn patch(component: &str) -> Result<NodeFile> {
    let probe = json!({ "initialDelaySeconds": 0, "periodSeconds": 1, "failureThreshold": 240 });
    let pod = json!({ "spec": { "containers": [{ "name": component, "startupProbe": probe }] } });
    Ok(NodeFile::new(format!("{}/{component}+strategic.yaml", paths::PATCHES), 0o644, yaml::to_string(&pod)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_patch_for_each_component() {
        let files = files().unwrap();
        assert_eq!(files[1].path, "/etc/kubernetes/patches/kube-apiserver+strategic.yaml");
        insta::assert_snapshot!(String::from_utf8_lossy(&files[1].data));
    }
}
