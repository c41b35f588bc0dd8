//! Clusters for tests.

use std::collections::BTreeMap;

use model::cluster::{Extras, Network, Node, ProxyMode, Wait, WaitFor};
use model::node_config::{Binary, Component, FileSource, Patches, PlacedFile};
use model::{Cluster, DriverKind, NodeConfig, address, names};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

pub fn sample(control_planes: u32, workers: u32) -> Cluster {
    let subnet = "192.168.49.0/24".parse().unwrap();
    let node = |number| Node {
        name: names::node(number),
        ip: address::node_ip(subnet, number).unwrap(),
        control_plane: number <= control_planes,
        worker: true,
        kubernetes_version: "v1.37.1".into(),
        config: NodeConfig::default(),
    };
    Cluster {
        name: "demo".into(),
        driver: DriverKind::Native,
        kubernetes_version: "v1.37.1".into(),
        cpus: 2,
        memory_mib: 3072,
        disk_mib: 20000,
        network: Network {
            subnet,
            pod_cidr: "10.244.0.0/16".parse().unwrap(),
            service_cidr: "10.96.0.0/12".parse().unwrap(),
            dns_domain: "cluster.local".into(),
        },
        api_port: 8443,
        nodes: (1..=control_planes + workers).map(node).collect(),
        api_names: vec![],
        api_ips: vec![],
        cert_expiration_hours: 26280,
        addons: BTreeMap::new(),
        namespace: "default".into(),
        keep_context: false,
        embed_certs: false,
        wait: Wait { components: vec![WaitFor::Apiserver] },
        cni: model::Cni::BuiltIn,
        vip_by: model::VipBy::Agent,
        node_defaults: NodeConfig::default(),
        extras: Extras::default(),
    }
}

/// Texts that YAML likes to take for something else.
fn awkward() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~]{0,30}",
        "\\PC{0,12}",
        prop::sample::select(vec![
            "yes",
            "no",
            "on",
            "~",
            "null",
            "",
            "0644",
            "1.30",
            "1e3",
            "a: b",
            "# x",
            "- a",
            "{a",
            "[",
            "*a",
            "&a",
            "!t",
            "%",
            "@",
            "`",
            "|",
            ">",
            "'",
            "\"",
            "line\nline\n",
            "\n",
            " lead",
            "trail ",
            "tab\tx",
            "a\n\n  b\n",
            "<<",
            "true",
            ".inf",
            "0x1f",
            "---",
            "...",
            "a #b",
            "a:",
            "\u{7f}",
            "\u{85}",
            "\u{0}",
            "\u{1b}[0m",
            "\u{2028}",
            "\u{feff}x",
            "é",
            "x\r\ny",
        ])
        .prop_map(str::to_owned),
    ]
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1000i32..1000).prop_map(|n| json!(f64::from(n) / 8.0)),
        awkward().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((awkward(), inner), 0..4)
                .prop_map(|list| Value::Object(list.into_iter().filter(|(k, _)| k != "<<").collect())),
        ]
    })
}

fn any_map() -> impl Strategy<Value = Map<String, Value>> {
    prop::collection::vec(("[a-zA-Z]{1,8}", any_value()), 0..3).prop_map(|list| list.into_iter().collect())
}

fn any_patches() -> impl Strategy<Value = Patches> {
    let kubeadm = prop::collection::vec(any_map(), 0..2).prop_map(|mut list| {
        for map in &mut list {
            map.insert("kind".into(), "ClusterConfiguration".into());
        }
        list
    });
    let containerd =
        prop::collection::vec(awkward().prop_filter("not empty", |t| !t.trim().is_empty()), 0..2);
    (kubeadm, any_map(), containerd).prop_map(|(kubeadm, kubelet, containerd)| Patches {
        kubeadm,
        kubelet,
        containerd,
    })
}

fn any_file() -> impl Strategy<Value = Vec<PlacedFile>> {
    let one = ("/[a-z]{1,8}/[a-z .]{1,8}x", 0o100u32..0o7777, awkward(), any::<bool>()).prop_map(
        |(path, mode, text, host)| {
            let from =
                if host { FileSource::Host(format!("x{}", text.trim())) } else { FileSource::Content(text) };
            PlacedFile { path, mode, from }
        },
    );
    let good = |list: &Vec<PlacedFile>| {
        list.iter().all(|f| {
            model::node_config::check_node_path(&f.path).is_ok()
                && !f.path.contains("..")
                && !matches!(&f.from, FileSource::Host(h) if h.trim() != h)
        })
    };
    prop::collection::vec(one, 0..2).prop_filter("paths of a node", good)
}

pub fn any_config() -> impl Strategy<Value = NodeConfig> {
    let sizes =
        (prop::option::of(2u32..64), prop::option::of(1800u32..99999), prop::option::of(2000u32..99999));
    let maps = (
        prop::collection::btree_map(
            "[a-z]{1,8}(/[a-zA-Z0-9]{1,8})?",
            "([a-zA-Z0-9]([a-zA-Z0-9._-]{0,8}[a-zA-Z0-9])?)?",
            0..3,
        ),
        prop::collection::btree_map("[A-Z][a-zA-Z0-9]{0,8}", any::<bool>(), 0..3),
        prop::collection::btree_map("[a-z][a-z-]{0,8}", awkward(), 0..3),
        prop::option::of("/[a-z]{1,9}"),
    );
    let lists = (
        prop::collection::btree_map("[a-z]{1,8}", ("[a-z0-9]{0,4}", 0usize..3), 0..3),
        prop::collection::btree_map("/[a-z]{6,8}", ("(\\./|/|~/)[a-z ]{1,8}", any::<bool>()), 0..3),
    );
    (sizes, maps, lists, any_file(), any_patches(), prop::option::of("[a-z]{1,5}/[a-z]{1,5}:[a-z0-9]{1,4}"))
        .prop_map(
            |(
                (cpus, memory_mib, disk_mib),
                (labels, feature_gates, flags, binary),
                (taints, mounts),
                files,
                patches,
                base_image,
            )| {
                let effect = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
                NodeConfig {
                    cpus,
                    memory_mib,
                    disk_mib,
                    container_runtime: cpus.map(|_| "containerd".to_owned()),
                    base_image,
                    extra_config: if flags.is_empty() {
                        BTreeMap::new()
                    } else {
                        [(Component::Kubelet, flags)].into()
                    },
                    feature_gates,
                    labels,
                    taints: taints
                        .iter()
                        .map(|(k, (v, e))| format!("{k}={v}:{}", effect[*e]).parse().unwrap())
                        .collect(),
                    mounts: mounts
                        .iter()
                        .map(|(node, (host, ro))| model::node_config::Mount::new(host, node, *ro).unwrap())
                        .collect(),
                    ports: vec![],
                    binaries: binary.map(|path| (Binary::Kubelet, path)).into_iter().collect(),
                    files,
                    patches,
                }
            },
        )
}

/// Control planes first, addresses without gaps: as a file makes it.
pub fn any_cluster() -> impl Strategy<Value = Cluster> {
    let nodes = prop::collection::vec((any_config(), any::<bool>()), 1..5);
    let waits = prop::collection::btree_set(prop::sample::select(WaitFor::ALL.to_vec()), 0..8);
    let addons = prop::collection::btree_map("[a-z]{1,8}", any::<bool>(), 0..4);
    let frame = (
        any::<[bool; 4]>(),
        1u32..99999,
        prop::sample::select(vec![None, Some(ProxyMode::None), Some(ProxyMode::Ipvs)]),
    );
    (nodes, any_config(), waits, addons, frame, 1usize..4).prop_map(
        |(nodes, defaults, waits, addons, ([keep, embed, extra, port], hours, proxy), planes)| {
            let mut c = sample(planes.min(nodes.len()) as u32, nodes.len().saturating_sub(planes) as u32);
            for (i, (config, older)) in nodes.into_iter().enumerate() {
                let node = &mut c.nodes[i];
                if port && i > 0 {
                    node.config.ports.push(format!("127.0.0.1:{}:80/udp", 1000 + i).parse().unwrap());
                }
                node.config = NodeConfig { ports: node.config.ports.clone(), ..config };
                if older && !node.control_plane {
                    node.kubernetes_version = "v1.35.2".into();
                }
            }
            c.node_defaults = NodeConfig { cpus: None, memory_mib: None, disk_mib: None, ..defaults };
            (c.wait.components, c.addons) = (waits.into_iter().collect(), addons);
            (c.keep_context, c.embed_certs, c.cert_expiration_hours) = (keep, embed, hours);
            c.extras.kube_proxy_mode = proxy;
            if extra {
                c.api_names = vec!["api.example".into(), "*.example.com".into()];
                c.api_ips = vec!["10.1.2.3".parse().unwrap()];
                c.cni = model::Cni::None;
                c.extras.manifests = vec!["a.yaml".into(), "https://example.com/b.yaml".into()];
                c.extras.images = vec!["example.com/app:1".into()];
            }
            c
        },
    )
}
