//! kubeadm's configuration, patches and phases. One file, `/var/tmp/minikube/kubeadm.yaml`, is
//! used for everything, so that kubeadm run by hand in a node sees what we saw.

mod cluster;
mod init;
mod join;
mod kubelet;
mod own;
mod patches;
mod phases;
mod proxy;

use anyhow::Result;
use model::node_spec::NodeFile;
use model::{Cluster, Node};

pub use join::{command as join_command, kubelet as joining_kubelet};
pub use own::IGNORE_FLAG;
pub use phases::{
    addon_manifest_command, finish_commands, node_spec_parts, own_api_command, release_apiserver_command,
    release_command, reset,
};

use crate::{Options, paths, yaml};

/// minikube's `clusterName`.
pub const CLUSTER_NAME: &str = "mk";

pub fn files(cluster: &Cluster, node: &Node, options: &Options) -> Result<Vec<NodeFile>> {
    let mut files = vec![resolv_conf(cluster, options)];
    if options.by_kubeadm {
        let join = yaml::to_string(&join::configuration(cluster, node))?;
        files.push(NodeFile::new(paths::JOIN_CONFIG, 0o600, join));
        // kubeadm fetches what all nodes have; this is what the node has of its own, and all else again.
        let kubelet = yaml::to_string(&kubelet::of_node(cluster, node, options))?;
        files.push(NodeFile::new(
            format!("{}/kubeletconfiguration+merge.yaml", paths::PATCHES),
            0o644,
            kubelet,
        ));
    }
    if options.by_kubeadm || options.join.is_some() {
        files.push(NodeFile::new(paths::REJOIN, 0o600, ""));
    }
    if node.control_plane {
        files.push(NodeFile::new(paths::KUBEADM_CONFIG, 0o600, config(cluster, node, options)?));
        files.extend(patches::files(cluster, node, options)?);
    } else if options.by_kubeadm {
        files.push(kubelet::no_manifests());
    } else {
        // What `kubeadm join` would fetch from the API, without waiting for one.
        files.extend(kubelet::worker_files(cluster, node, options)?);
    }
    Ok(files)
}

fn config(cluster: &Cluster, node: &Node, options: &Options) -> Result<String> {
    let own = cluster.config_of(node);
    let mut init = init::configuration(cluster, node);
    self::own::init(&mut init, &own);
    let mut shared = cluster::configuration(cluster);
    self::own::cluster(&mut shared, &own);
    let mut proxy = proxy::configuration(cluster, options);
    self::own::proxy(&mut proxy, &cluster.node_defaults);
    yaml::to_documents(&[init, shared, kubelet::of_node(cluster, node, options), proxy])
}

/// Pods with `dnsPolicy: Default`, CoreDNS first of all, get this file: never a resolver on a
/// loopback address, which would make CoreDNS ask itself. CoreDNS refuses to start with none.
fn resolv_conf(cluster: &Cluster, options: &Options) -> NodeFile {
    let servers = match options.nameservers.as_slice() {
        [] => vec![cluster.gateway()],
        some => some.to_vec(),
    };
    let text: String = servers.iter().map(|ip| format!("nameserver {ip}\n")).collect();
    NodeFile::new(paths::RESOLV_CONF, 0o644, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ProxyMode, fixture};

    fn text(control_planes: u32, node: usize, options: &Options) -> String {
        let cluster = fixture::cluster(control_planes, 1);
        config(&cluster, &cluster.nodes[node], options).unwrap()
    }

    #[test]
    fn the_first_control_plane() {
        insta::assert_snapshot!(text(1, 0, &fixture::options()));
    }

    #[test]
    fn the_third_control_plane_differs_in_name_and_address_only() {
        let first = text(3, 0, &fixture::options());
        let third = text(3, 2, &fixture::options());
        let renamed = first
            .replace("name: demo\n", "name: demo-m03\n")
            .replace(": \"192.168.49.2\"", ": \"192.168.49.4\"");
        assert_eq!(renamed, third);
    }

    #[test]
    fn the_proxy_mode_is_the_callers() {
        let options = Options { proxy_mode: ProxyMode::Iptables, ..fixture::options() };
        assert!(text(1, 0, &options).contains("mode: iptables"));
    }

    #[test]
    fn there_is_always_a_name_server() {
        let cluster = fixture::cluster(1, 0);
        let options = Options { nameservers: vec![], ..fixture::options() };
        assert_eq!(resolv_conf(&cluster, &options).data, b"nameserver 192.168.49.1\n");
    }
}
