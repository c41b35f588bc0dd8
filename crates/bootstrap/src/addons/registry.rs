//! The registry in the cluster, by one name for the host and all nodes: `localhost:PORT`.

use model::Cluster;

const TEMPLATE: &str = include_str!("registry.yaml");

/// The name of the addon, and of what it makes.
pub const NAME: &str = "registry";
/// Where every node has the directory of the host, and what of it the registry uses.
pub const MOUNT: &str = "/var/lib/manykube-registry";
pub const DATA: &str = "data";

pub(super) fn manifest(cluster: &Cluster, port: u16) -> String {
    TEMPLATE
        .replace("{Port}", &port.to_string())
        .replace("{Cluster}", &cluster.name)
        .replace("{Domain}", &cluster.network.dns_domain)
        .replace("{Directory}", &format!("{MOUNT}/{DATA}"))
}

#[cfg(test)]
mod tests {
    use crate::{fixture, manifest};

    #[test]
    fn it_is_announced_as_others_look_for_it() {
        let text =
            super::manifest(&fixture::cluster(1, 1), 5001).replace("{Registry}", "r.example/registry:3");
        let objects = manifest::objects(&text).expect("objects");
        let find = |kind: &str| objects.iter().find(|o| o["kind"] == kind).expect(kind);
        let announced = find("ConfigMap");
        assert_eq!(announced.pointer("/metadata/namespace"), Some(&"kube-public".into()));
        let text = announced.pointer("/data/localRegistryHosting.v1").and_then(|v| v.as_str()).expect("text");
        assert!(text.contains("host: \"localhost:5001\"\n"), "{text}");
        assert!(
            text.contains("hostFromClusterNetwork: \"registry.kube-system.svc.cluster.local:5000\""),
            "{text}"
        );
        let container = find("DaemonSet").pointer("/spec/template/spec/containers/0").expect("a container");
        assert_eq!(container.pointer("/readinessProbe/httpGet/port"), Some(&5001.into()));
        let environment = container.pointer("/env").and_then(|e| e.as_array()).expect("an environment");
        let delete = environment.iter().find(|e| e["name"] == "REGISTRY_STORAGE_DELETE_ENABLED");
        assert_eq!(delete.map(|e| &e["value"]), Some(&"false".into()));
        assert!(!serde_json::to_string(&objects).expect("json").contains("{Port}"));
    }
}
