//! ClusterConfiguration: what all control planes share. kubeadm uploads it, and a later
//! `kubeadm join` or `upgrade` reads it from there, so nothing of one node may be in it.

use model::{Cluster, names};
use serde_json::{Value, json};

use crate::kubeadm::CLUSTER_NAME;
use crate::paths::{CERTS, ETCD_DATA};
use crate::pki::sans;

/// Where the scheduler's serving certificate lies: alone, because its pod mounts the directory
/// and has no business with the other keys.
pub const SCHEDULER_CERTS: &str = "/var/lib/minikube/certs/kube-scheduler";
pub const CONTROLLER_MANAGER_CERT: &str = "/var/lib/minikube/certs/kube-controller-manager";
const CA_HOURS: u32 = 87_600;

pub fn configuration(cluster: &Cluster) -> Value {
    json!({
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "ClusterConfiguration",
        "clusterName": CLUSTER_NAME,
        "kubernetesVersion": cluster.kubernetes_version,
        "controlPlaneEndpoint": format!("{}:{}", names::CONTROL_PLANE_HOST, cluster.api_port),
        "certificatesDir": CERTS,
        "certificateValidityPeriod": format!("{}h", cluster.cert_expiration_hours),
        "caCertificateValidityPeriod": format!("{CA_HOURS}h"),
        "encryptionAlgorithm": "ECDSA-P256",
        "imageRepository": "registry.k8s.io",
        "networking": {
            "dnsDomain": cluster.network.dns_domain,
            "podSubnet": cluster.network.pod_cidr,
            "serviceSubnet": cluster.network.service_cidr,
        },
        "etcd": { "local": { "dataDir": ETCD_DATA } },
        "apiServer": apiserver(cluster),
        "controllerManager": controller_manager(),
        "scheduler": scheduler(),
    })
}

fn apiserver(cluster: &Cluster) -> Value {
    // A control plane that joins later makes its own certificate from these.
    let sans: Vec<String> = sans::apiserver(cluster).iter().map(ToString::to_string).collect();
    json!({
        "certSANs": sans,
        // Half of a start's CPU is this process. Collecting garbage half as often saves about 15 %
        // of it for 40 MB; 400 saves hardly more and costs 110 MB (measured, v1.37.1).
        "extraEnvs": [{ "name": "GOGC", "value": "200" }],
    })
}

fn controller_manager() -> Value {
    json!({ "extraArgs": args(&[
        // Each node owns a fixed range of the pods' network, which we write into its Node object.
        ("allocate-node-cidrs", "false"),
        // The default of 20 requests a second keeps the first DaemonSet pod back for seconds.
        ("kube-api-qps", "1000"),
        ("kube-api-burst", "2000"),
        ("tls-cert-file", &format!("{CONTROLLER_MANAGER_CERT}.crt")),
        ("tls-private-key-file", &format!("{CONTROLLER_MANAGER_CERT}.key")),
    ]) })
}

fn scheduler() -> Value {
    json!({
        "extraArgs": args(&[
            ("tls-cert-file", &format!("{SCHEDULER_CERTS}/tls.crt")),
            ("tls-private-key-file", &format!("{SCHEDULER_CERTS}/tls.key")),
        ]),
        "extraVolumes": [{
            "name": "serving-certificate",
            "hostPath": SCHEDULER_CERTS,
            "mountPath": SCHEDULER_CERTS,
            "readOnly": true,
            "pathType": "Directory",
        }],
    })
}

fn args(pairs: &[(&str, &str)]) -> Value {
    pairs.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect()
}
