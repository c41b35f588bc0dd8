//! The default StorageClass: directories on the node's disk, by rancher's local-path-provisioner.

use anyhow::Result;
use serde_json::{Value, json};

use super::{STORAGE_CLASS, STORAGE_NAMESPACE, STORAGE_PROVISIONER, StorageImages};
use crate::yaml;

const TEMPLATE: &str = include_str!("local-path.yaml");
/// Below /var, so that the volumes outlive the machine's root file system.
const DIRECTORY: &str = "/var/local-path-provisioner";

pub fn objects(images: &StorageImages) -> Result<Vec<Value>> {
    let text = TEMPLATE
        .replace("{namespace}", STORAGE_NAMESPACE)
        .replace("{name}", STORAGE_PROVISIONER)
        .replace("{class}", STORAGE_CLASS)
        .replace("{image}", &images.provisioner);
    let mut objects = yaml::from_documents(&text)?;
    objects.push(config(images)?);
    Ok(objects)
}

/// The provisioner runs a helper pod on the node to make and remove a volume's directory.
fn config(images: &StorageImages) -> Result<Value> {
    let paths =
        json!({ "nodePathMap": [{ "node": "DEFAULT_PATH_FOR_NON_LISTED_NODES", "paths": [DIRECTORY] }] });
    let helper = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": "helper-pod" },
        "spec": {
            "priorityClassName": "system-node-critical",
            "tolerations": [{ "operator": "Exists" }],
            "containers": [{
                "name": "helper-pod",
                "image": images.helper,
                "imagePullPolicy": "IfNotPresent",
            }],
        },
    });
    Ok(json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": "local-path-config", "namespace": STORAGE_NAMESPACE },
        "data": {
            "config.json": serde_json::to_string_pretty(&paths)?,
            "setup": "#!/bin/sh\nset -eu\nmkdir -m 0777 -p \"$VOL_DIR\"\n",
            "teardown": "#!/bin/sh\nset -eu\nrm -rf \"$VOL_DIR\"\n",
            "helperPod.yaml": yaml::to_string(&helper)?,
        },
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_objects() {
        let images = StorageImages {
            provisioner: "docker.io/rancher/local-path-provisioner:v0.0.30".into(),
            helper: "docker.io/library/busybox:1.37".into(),
        };
        let text = yaml::to_documents(&objects(&images).unwrap()).unwrap();
        assert!(!text.contains("{name}") && !text.contains("{image}"));
        insta::assert_snapshot!(text);
    }
}
