//! The kubeconfigs in a node, with kubeadm's names and endpoints.

use anyhow::Result;
use k8s_openapi::ByteString;
use model::node_spec::NodeFile;
use model::{Cluster, Node, names};
use serde_json::{Value, json};

use crate::pki::leaf::{self, of_machine};
use crate::pki::{Pair, Pki};
use crate::{kubeadm, paths, yaml};

const MODE: u32 = 0o600;

/// What runs on a control plane follows its own API server, as kubeadm has it: it must never speak
/// to one that is older than itself.
pub fn files(cluster: &Cluster, node: &Node, pki: &Pki) -> Result<Vec<NodeFile>> {
    let port = cluster.api_port;
    let machine = cluster.machine(node);
    let shared = format!("https://{}:{port}", names::CONTROL_PLANE_HOST);
    let own = format!("https://{}:{port}", node.ip);
    let local = format!("https://localhost:{port}");
    let file = |name: &str, server: &str, user: &str, leaf: &str| -> Result<NodeFile> {
        let path =
            if name.starts_with('/') { name.to_owned() } else { format!("{}/{name}", paths::KUBERNETES) };
        let config = config(server, user, &pki.ca.cert, pki.leaf(leaf)?);
        Ok(NodeFile::new(path, MODE, yaml::to_string(&config)?))
    };

    let kubelet = of_machine(&machine, leaf::KUBELET_CLIENT);
    let user = format!("system:node:{machine}");
    let mut files =
        vec![file("kubelet.conf", if node.control_plane { &own } else { &shared }, &user, &kubelet)?];
    if node.control_plane {
        files.push(file("admin.conf", &shared, "kubernetes-admin", leaf::ADMIN)?);
        files.push(file("super-admin.conf", &shared, "kubernetes-super-admin", leaf::SUPER_ADMIN)?);
        let kcm = "system:kube-controller-manager";
        files.push(file("controller-manager.conf", &own, kcm, leaf::CONTROLLER_MANAGER)?);
        files.push(file("scheduler.conf", &own, "system:kube-scheduler", leaf::SCHEDULER)?);
        files.push(file(paths::KUBECONFIG, &local, "kubernetes-admin", leaf::ADMIN)?);
    }
    Ok(files)
}

fn config(server: &str, user: &str, ca: &str, identity: &Pair) -> Value {
    let cluster = kubeadm::CLUSTER_NAME;
    let context = format!("{user}@{cluster}");
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{
            "name": cluster,
            "cluster": { "certificate-authority-data": base64(ca), "server": server },
        }],
        "contexts": [{ "name": context, "context": { "cluster": cluster, "user": user } }],
        "current-context": context,
        "users": [{
            "name": user,
            "user": {
                "client-certificate-data": base64(&identity.cert),
                "client-key-data": base64(&identity.key),
            },
        }],
    })
}

/// Kubernetes' own type for bytes in JSON, which is base64.
pub fn base64(data: impl AsRef<[u8]>) -> Value {
    json!(ByteString(data.as_ref().to_vec()))
}
