//! The file of a cluster: what `start -f` would make the same one from.

use model::{Cluster, Cni, Node};

use crate::file::{
    ApiServer, ApiVersion, ClusterFile, Kind, KubeconfigSettings, Networking, NodeGroup, Role, WaitList,
};

pub fn export(cluster: &Cluster) -> ClusterFile {
    let mut file = ClusterFile {
        api_version: ApiVersion::V1,
        kind: Kind::Cluster,
        name: Some(cluster.name.clone()),
        driver: Some(cluster.driver.to_string()),
        nodes: cluster.nodes.iter().map(|node| group(cluster, node)).collect(),
        networking: Networking {
            node_subnet: Some(cluster.network.subnet),
            pod_subnet: Some(cluster.network.pod_cidr),
            service_subnet: Some(cluster.network.service_cidr),
            dns_domain: Some(cluster.network.dns_domain.clone()),
            kube_proxy_mode: cluster.extras.kube_proxy_mode,
        },
        cni: match &cluster.cni {
            Cni::BuiltIn => None,
            Cni::None => Some("none".to_owned()),
            Cni::Manifest(path) => Some(path.clone()),
        },
        api_server: ApiServer {
            port: Some(cluster.api_port),
            extra_sans: (cluster.api_names.iter().cloned())
                .chain(cluster.api_ips.iter().map(ToString::to_string))
                .collect(),
        },
        cert_expiration: Some(cluster.cert_expiration_hours),
        kubeconfig: KubeconfigSettings {
            namespace: Some(cluster.namespace.clone()),
            // Said only when it is so: it is nothing a reader would look for.
            keep_context: cluster.keep_context.then_some(true),
            embed_certs: cluster.embed_certs.then_some(true),
        },
        wait: Some(WaitList(cluster.wait.components.clone())),
        addons: Some(cluster.addons.clone()),
        manifests: cluster.extras.manifests.clone(),
        images: cluster.extras.images.clone(),
        ..ClusterFile::default()
    };
    file.set_config(&cluster.node_defaults);
    file.kubernetes_version = Some(cluster.kubernetes_version.clone());
    file.cpus = Some(cluster.cpus);
    file.memory = Some(cluster.memory_mib);
    file.disk_size = Some(cluster.disk_mib);
    file
}

fn group(cluster: &Cluster, node: &Node) -> NodeGroup {
    let mut group = NodeGroup {
        name: Some(node.name.clone()).filter(|n| !n.is_empty()),
        role: if node.control_plane { Role::ControlPlane } else { Role::Worker },
        ..NodeGroup::default()
    };
    group.set_config(&node.config);
    group.kubernetes_version =
        Some(node.kubernetes_version.clone()).filter(|v| *v != cluster.kubernetes_version);
    group
}

/// As text.
pub fn write(file: &ClusterFile) -> Result<String, String> {
    // Long lines stay whole: a folded certificate or command is hard to copy.
    let options = serde_saphyr::ser_options! { prefer_block_scalars: true, compact_list_indent: true, folded_wrap_chars: 1_000_000 };
    serde_saphyr::to_string_with_options(file, options).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::samples::{any_cluster, sample};
    use crate::{parse, resolve};

    /// Defaults: another cluster, so that nothing comes out right by chance.
    fn defaults() -> Cluster {
        let mut base = sample(1, 0);
        base.nodes.clear();
        (base.name, base.kubernetes_version) = ("other".into(), "v1.30.0".into());
        (base.cpus, base.memory_mib, base.disk_mib, base.api_port) = (9, 9999, 99999, 9999);
        base.network.subnet = "192.168.9.0/24".parse().unwrap();
        base.cert_expiration_hours = 1;
        base
    }

    fn again(cluster: &Cluster, base: &Cluster) -> Cluster {
        let text = write(&export(cluster)).unwrap();
        let parsed = parse(&text).unwrap_or_else(|e| panic!("{}\n{text}", e.show("file")));
        resolve(&parsed.file, base).unwrap()
    }

    #[test]
    fn a_small_one_reads_well() {
        let mut cluster = sample(1, 1);
        cluster.nodes[1].config.memory_mib = Some(2048);
        cluster.nodes[1].config.taints = vec!["gpu=yes:NoSchedule".parse().unwrap()];
        cluster.nodes[1].config.extra_config =
            [(model::node_config::Component::Kubelet, [("max-pods".into(), "50".into())].into())].into();
        let text = write(&export(&cluster)).unwrap();
        assert_eq!(
            text,
            "apiVersion: manykube.dev/v1\nkind: Cluster\nname: demo\ndriver: native\nnodes:\n- role: control-plane\n\
             - name: m02\n  memory: 2Gi\n  taints:\n  - gpu=yes:NoSchedule\n  extraConfig:\n    kubelet:\n      max-pods: \"50\"\n\
             networking:\n  nodeSubnet: 192.168.49.0/24\n  podSubnet: 10.244.0.0/16\n  serviceSubnet: 10.96.0.0/12\n  \
             dnsDomain: cluster.local\napiServer:\n  port: 8443\ncertExpiration: 26280h\nkubeconfig:\n  namespace: default\n\
             wait:\n- apiserver\naddons: {}\nkubernetesVersion: v1.37.1\ncpus: 2\nmemory: 3Gi\ndiskSize: 20000Mi\n"
        );
        assert_eq!(again(&cluster, &defaults()), cluster);
    }

    #[test]
    fn gaps_and_names_stay() {
        let mut cluster = sample(2, 3);
        cluster.nodes.remove(0);
        cluster.nodes.remove(2);
        cluster.nodes[2].name = "gpu".into();
        cluster.nodes.reverse();
        assert_eq!(again(&cluster, &cluster), cluster);
    }

    #[test]
    fn a_new_node_gets_an_address_of_its_own() {
        let old = sample(1, 2);
        let mut file = export(&old);
        file.nodes.remove(1);
        file.nodes.insert(0, NodeGroup { name: Some("new".into()), ..NodeGroup::default() });
        let new = resolve(&file, &old).unwrap();
        let nodes: Vec<_> = new.nodes.iter().map(|n| (n.name.as_str(), n.ip.octets()[3])).collect();
        assert_eq!(nodes, [("", 2), ("m03", 4), ("new", 5)]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
        #[test]
        fn a_cluster_survives_its_file(c in any_cluster()) {
            prop_assert_eq!(&again(&c, &defaults()), &c);
            prop_assert_eq!(&again(&c, &c), &c);
        }

        #[test]
        fn so_does_the_file(c in any_cluster()) {
            let file = export(&c);
            let text = write(&file).unwrap();
            prop_assert_eq!(parse(&text).unwrap().file, file);
        }
    }
}
