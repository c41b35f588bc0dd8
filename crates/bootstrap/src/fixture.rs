//! The clusters that the tests of this crate are about.

use std::collections::BTreeMap;

use model::cluster::{Network, Wait};
use model::{Cluster, Cni, DriverKind, Node, VipBy, address, names};

use crate::{Options, ProxyMode};

pub fn cluster(control_planes: u32, workers: u32) -> Cluster {
    let subnet = "192.168.49.0/24".parse().unwrap();
    let node = |number: u32| Node {
        name: names::node(number),
        ip: address::node_ip(subnet, number).unwrap(),
        control_plane: number <= control_planes,
        worker: true,
        kubernetes_version: "v1.37.1".into(),
        config: model::NodeConfig::default(),
    };
    Cluster {
        name: "demo".into(),
        driver: DriverKind::Native,
        kubernetes_version: "v1.37.1".into(),
        cpus: 2,
        memory_mib: 2048,
        disk_mib: 20_000,
        network: Network {
            subnet,
            pod_cidr: "10.244.0.0/16".parse().unwrap(),
            service_cidr: "10.96.0.0/12".parse().unwrap(),
            dns_domain: "cluster.local".into(),
        },
        api_port: 8443,
        nodes: (1..=control_planes + workers).map(node).collect(),
        api_names: vec!["api.example".into()],
        api_ips: vec![],
        cert_expiration_hours: 26_280,
        addons: BTreeMap::new(),
        namespace: "default".into(),
        keep_context: false,
        embed_certs: false,
        wait: Wait { components: vec![] },
        cni: Cni::BuiltIn,
        vip_by: VipBy::Agent,
        node_defaults: model::NodeConfig::default(),
        extras: model::cluster::Extras::default(),
    }
}

pub fn options() -> Options {
    Options {
        pause_image: "registry.k8s.io/pause:3.10.2".into(),
        proxy_mode: ProxyMode::Nftables,
        nameservers: vec!["192.0.2.53".parse().unwrap()],
        cgroup_v1: false,
        user_namespace: false,
        join: None,
        hold_api: false,
        by_kubeadm: false,
    }
}
