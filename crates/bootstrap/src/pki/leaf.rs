//! Every certificate of a cluster that is not an authority, as one table.

use model::{Cluster, Node};

use super::sans::{self, Sans};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signer {
    Cluster,
    FrontProxy,
    Etcd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Usage {
    Client,
    Server,
    /// etcd's servers are clients of each other.
    Both,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaf {
    /// Path below the profile's directory, without `.crt` and `.key`.
    pub name: String,
    pub signer: Signer,
    pub common_name: String,
    pub organization: Option<&'static str>,
    pub usage: Usage,
    pub sans: Sans,
}

pub const CLIENT: &str = "client";
pub const APISERVER: &str = "apiserver";
pub const FRONT_PROXY_CLIENT: &str = "proxy-client";
pub const APISERVER_KUBELET_CLIENT: &str = "pki/apiserver-kubelet-client";
pub const APISERVER_ETCD_CLIENT: &str = "pki/apiserver-etcd-client";
pub const ETCD_HEALTHCHECK_CLIENT: &str = "pki/etcd-healthcheck-client";
pub const ADMIN: &str = "pki/admin";
pub const SUPER_ADMIN: &str = "pki/super-admin";
pub const CONTROLLER_MANAGER: &str = "pki/controller-manager";
pub const SCHEDULER: &str = "pki/scheduler";
pub const CONTROLLER_MANAGER_SERVER: &str = "pki/controller-manager-server";
pub const SCHEDULER_SERVER: &str = "pki/scheduler-server";

pub const KUBELET_CLIENT: &str = "kubelet-client";
pub const KUBELET_SERVER: &str = "kubelet-server";
pub const ETCD_SERVER: &str = "etcd-server";
pub const ETCD_PEER: &str = "etcd-peer";

const MASTERS: Option<&str> = Some("system:masters");
/// kubeadm binds this group to cluster-admin; unlike system:masters it can be revoked.
const CLUSTER_ADMINS: Option<&str> = Some("kubeadm:cluster-admins");

/// The name of a certificate that only one node has.
pub fn of_machine(machine: &str, what: &str) -> String {
    format!("pki/nodes/{machine}/{what}")
}

pub fn all(cluster: &Cluster) -> Vec<Leaf> {
    cluster_wide(cluster).into_iter().chain(cluster.nodes.iter().flat_map(|n| of_node(cluster, n))).collect()
}

fn cluster_wide(cluster: &Cluster) -> Vec<Leaf> {
    use Signer::{Cluster as Ca, Etcd, FrontProxy};
    vec![
        client(CLIENT, Ca, "minikube-user", MASTERS),
        server(APISERVER, Ca, "kube-apiserver", sans::apiserver(cluster)),
        client(FRONT_PROXY_CLIENT, FrontProxy, "front-proxy-client", None),
        // From 1.36 on kubeadm binds the name; 1.35 still needs the group.
        client(APISERVER_KUBELET_CLIENT, Ca, "kube-apiserver-kubelet-client", CLUSTER_ADMINS),
        client(APISERVER_ETCD_CLIENT, Etcd, "kube-apiserver-etcd-client", None),
        client(ETCD_HEALTHCHECK_CLIENT, Etcd, "kube-etcd-healthcheck-client", None),
        client(ADMIN, Ca, "kubernetes-admin", CLUSTER_ADMINS),
        client(SUPER_ADMIN, Ca, "kubernetes-super-admin", MASTERS),
        client(CONTROLLER_MANAGER, Ca, "system:kube-controller-manager", None),
        client(SCHEDULER, Ca, "system:kube-scheduler", None),
        // Without these two, each component makes an RSA certificate of its own at every start.
        server(CONTROLLER_MANAGER_SERVER, Ca, "kube-controller-manager", sans::local()),
        server(SCHEDULER_SERVER, Ca, "kube-scheduler", sans::local()),
    ]
}

fn of_node(cluster: &Cluster, node: &Node) -> Vec<Leaf> {
    let machine = cluster.machine(node);
    let name = |what: &str| of_machine(&machine, what);
    let sans = sans::on_node(cluster, node);
    let user = format!("system:node:{machine}");
    let mut leaves = vec![
        client(&name(KUBELET_CLIENT), Signer::Cluster, &user, Some("system:nodes")),
        server(&name(KUBELET_SERVER), Signer::Cluster, &machine, sans.clone()),
    ];
    if node.control_plane {
        for what in [ETCD_SERVER, ETCD_PEER] {
            let leaf = server(&name(what), Signer::Etcd, &machine, sans.clone());
            leaves.push(Leaf { usage: Usage::Both, ..leaf });
        }
    }
    leaves
}

pub(super) fn client(
    name: &str,
    signer: Signer,
    common_name: &str,
    organization: Option<&'static str>,
) -> Leaf {
    let (name, common_name) = (name.to_owned(), common_name.to_owned());
    Leaf { name, signer, common_name, organization, usage: Usage::Client, sans: Sans::new() }
}

pub(super) fn server(name: &str, signer: Signer, common_name: &str, sans: Sans) -> Leaf {
    let (name, common_name) = (name.to_owned(), common_name.to_owned());
    Leaf { name, signer, common_name, organization: None, usage: Usage::Server, sans }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::fixture;

    #[test]
    fn names_are_unique_and_workers_have_no_etcd() {
        let leaves = all(&fixture::cluster(3, 2));
        let names: BTreeSet<&str> = leaves.iter().map(|l| l.name.as_str()).collect();
        assert_eq!(names.len(), leaves.len());
        assert!(names.contains("pki/nodes/demo-m03/etcd-peer"));
        assert!(names.contains("pki/nodes/demo-m04/kubelet-client"));
        assert!(!names.contains("pki/nodes/demo-m04/etcd-peer"));
    }

    #[test]
    fn a_kubelet_is_its_node() {
        let leaves = all(&fixture::cluster(1, 1));
        let kubelet = leaves.iter().find(|l| l.name == "pki/nodes/demo-m02/kubelet-client").unwrap();
        assert_eq!(kubelet.common_name, "system:node:demo-m02");
        assert_eq!(kubelet.organization, Some("system:nodes"));
    }
}
