use proptest::prelude::*;

use super::*;
use crate::{address, names};

fn net(s: &str) -> Ipv4Net {
    s.parse().unwrap()
}

pub fn sample() -> Cluster {
    Cluster {
        name: "demo".into(),
        driver: DriverKind::Native,
        kubernetes_version: "v1.37.1".into(),
        cpus: 2,
        memory_mib: 3072,
        disk_mib: 20000,
        network: Network {
            subnet: net("192.168.49.0/24"),
            pod_cidr: net(DEFAULT_POD_CIDR),
            service_cidr: net("10.96.0.0/12"),
            dns_domain: "cluster.local".into(),
        },
        api_port: 8443,
        nodes: vec![Node {
            name: String::new(),
            ip: Ipv4Addr::new(192, 168, 49, 2),
            control_plane: true,
            worker: true,
            kubernetes_version: "v1.37.1".into(),
            config: NodeConfig::default(),
        }],
        api_names: vec![],
        api_ips: vec![],
        cert_expiration_hours: 26280,
        addons: BTreeMap::new(),
        namespace: "default".into(),
        keep_context: false,
        embed_certs: false,
        wait: Wait { components: vec![WaitFor::Apiserver, WaitFor::SystemPods] },
        cni: Cni::BuiltIn,
        vip_by: VipBy::Agent,
        node_defaults: NodeConfig::default(),
        extras: Extras::default(),
    }
}

#[test]
fn the_keys_are_minikubes() {
    let doc = render(&sample(), None);
    assert_eq!(doc["CertExpiration"], 94_608_000_000_000_000_i64);
    assert_eq!(doc["StartHostTimeout"], 360_000_000_000_i64);
    assert_eq!(doc["DockerEnv"], Value::Null);
    assert_eq!(doc["ScheduledStop"], Value::Null);
    assert_eq!(doc["KubernetesConfig"]["APIServerNames"], Value::Null);
    assert_eq!(doc["KubernetesConfig"]["APIServerHAVIP"], "");
    assert_eq!(doc["KubernetesConfig"]["CNI"], "");
    assert_eq!(doc["VerifyComponents"]["system_pods"], true);
    assert_eq!(doc["VerifyComponents"]["kubelet"], false);
    assert_eq!(
        doc["Nodes"][0].to_string(),
        concat!(
            r#"{"Name":"","IP":"192.168.49.2","Port":8443,"KubernetesVersion":"v1.37.1","#,
            r#""ContainerRuntime":"containerd","ControlPlane":true,"Worker":true}"#
        )
    );
    assert_eq!(doc["Manykube"]["SchemaVersion"], 1);
    // 33 strings, 16 booleans, 13 integers, 10 arrays, 7 objects, and ours.
    assert_eq!(doc.len(), 33 + 16 + 13 + 10 + 7 + 1);
}

#[test]
fn what_we_do_not_know_is_kept() {
    let mut doc = render(&sample(), None);
    doc.insert("FromTheFuture".into(), json!({ "a": [1, 2] }));
    doc["KubernetesConfig"]["RegistryAliases"] = "a.example".into();
    doc["Nodes"][0]["Zone"] = "b".into();
    doc["Manykube"]["Note"] = "kept".into();
    doc.insert("MountString".into(), "/a:/b".into());
    let file = parse(&Value::Object(doc).to_string()).unwrap();
    let mut cluster = file.cluster;
    cluster.memory_mib = 4096;
    let again = render(&cluster, Some(&file.raw));
    assert_eq!(again["FromTheFuture"]["a"][1], 2);
    assert_eq!(again["KubernetesConfig"]["RegistryAliases"], "a.example");
    assert_eq!(again["Nodes"][0]["Zone"], "b");
    assert_eq!(again["Manykube"]["Note"], "kept");
    assert_eq!(again["MountString"], "/a:/b");
    assert_eq!(again["Memory"], 4096);
}

#[test]
fn errors_say_where() {
    let good = render_text(&sample(), None);
    let cut = &good[..good.len() / 2];
    assert!(matches!(parse(cut), Err(ConfigError::Syntax { line, .. }) if line > 10));
    let bad = good.replace("\"Memory\": 3072", "\"Memory\": \"much\"");
    let line = good.lines().position(|l| l.contains("\"Memory\"")).unwrap() + 1;
    match parse(&bad) {
        Err(ConfigError::Syntax { line: l, message, .. }) => {
            assert_eq!(l, line);
            assert!(message.starts_with("invalid type: string \"much\""), "{message}");
            assert!(!message.contains("line"), "{message}");
        }
        other => panic!("{other:?}"),
    }
    let newer = good.replace("\"SchemaVersion\": 1", "\"SchemaVersion\": 2");
    assert_eq!(parse(&newer), Err(ConfigError::Newer { found: 2 }));
    let docker = good.replace("\"native\"", "\"virtualbox\"");
    assert_eq!(parse(&docker), Err(ConfigError::Driver("virtualbox".into())));
    let calico = good.replace("\"CNI\": \"\"", "\"CNI\": \"calico\"");
    assert!(matches!(parse(&calico), Err(ConfigError::Content(_))));
    assert!(matches!(parse(""), Err(ConfigError::Syntax { line: 1, .. })));
    assert!(matches!(parse("[]"), Err(ConfigError::Syntax { .. })));
}

/// One that says something of everything.
fn rich(cpus: Option<u32>, memory_mib: Option<u32>) -> NodeConfig {
    serde_json::from_value(json!({
        "CPUs": cpus, "Memory": memory_mib, "DiskSize": 9000, "ContainerRuntime": "containerd",
        "BaseImage": "example.com/node:1", "ExtraConfig": { "kubelet": { "max-pods": "9" } },
        "FeatureGates": { "AllAlpha": true }, "Labels": { "a": "b" }, "Taints": ["gpu=yes:NoSchedule"],
        "Mounts": ["/a:/b:ro"], "Ports": ["127.0.0.1:80:80/udp"], "Binaries": { "kubelet": "/k" },
        "Files": [{ "Path": "/x", "Mode": 420, "From": { "Content": "y" } }],
        "Patches": { "Kubelet": { "maxPods": 9 }, "Kubeadm": [{ "kind": "A" }], "Containerd": ["a = 1"] },
    }))
    .unwrap()
}

fn any_cluster() -> impl Strategy<Value = Cluster> {
    let sizes = prop::collection::vec((prop::option::of(2u32..64), prop::option::of(1800u32..99999)), 1..6);
    let waits = prop::collection::btree_set(prop::sample::select(WaitFor::ALL.to_vec()), 0..7);
    let addons = prop::collection::btree_map("[a-z-]{1,8}", any::<bool>(), 0..4);
    (sizes, 1usize..4, 1u8..255, waits, addons, 1u16.., 0..=MAX_CERT_HOURS, any::<[bool; 2]>()).prop_map(
        |(sizes, planes, third, waits, addons, port, hours, [keep, embed])| {
            let mut c = sample();
            c.network.subnet = Ipv4Net::new(Ipv4Addr::new(192, 168, third, 0), 24).unwrap();
            let subnet = c.network.subnet;
            c.nodes = (1u32..)
                .zip(&sizes)
                .map(|(i, (cpus, memory_mib))| Node {
                    name: names::node(i),
                    ip: address::node_ip(subnet, i).unwrap(),
                    control_plane: i as usize <= planes,
                    worker: true,
                    kubernetes_version: "v1.37.1".into(),
                    config: if i == 2 {
                        rich(*cpus, *memory_mib)
                    } else {
                        NodeConfig { cpus: *cpus, memory_mib: *memory_mib, ..NodeConfig::default() }
                    },
                })
                .collect();
            c.wait.components = waits.into_iter().collect();
            (c.addons, c.api_port, c.cert_expiration_hours) = (addons, port, hours);
            (c.keep_context, c.embed_certs) = (keep, embed);
            if embed {
                c.cni = Cni::None;
                c.vip_by = VipBy::KubeVip { image: "registry.example/kube-vip:v1".into() };
            }
            if keep {
                c.api_names = vec!["api.example".into()];
                c.api_ips = vec![Ipv4Addr::new(10, 1, 2, 3)];
                c.cni = Cni::Manifest("/tmp/cni.yaml".into());
            }
            if embed {
                c.node_defaults = NodeConfig { cpus: None, ..rich(None, None) };
                c.extras.kube_proxy_mode = Some(crate::cluster::ProxyMode::Nftables);
                c.extras.images = vec!["example.com/app:1".into()];
            }
            c
        },
    )
}

proptest! {
    #[test]
    fn a_cluster_survives_its_file(c in any_cluster()) {
        let file = parse(&render_text(&c, None)).unwrap();
        prop_assert_eq!(&file.cluster, &c);
        prop_assert_eq!(render(&c, Some(&file.raw)), file.raw);
    }

    #[test]
    fn rewriting_forgets_nothing_of_the_old_file_and_keeps_nothing_of_the_old_cluster(
        old in any_cluster(), new in any_cluster()
    ) {
        let file = parse(&render_text(&old, None)).unwrap();
        let again = parse(&Value::Object(render(&new, Some(&file.raw))).to_string()).unwrap();
        prop_assert_eq!(again.cluster, new);
    }

    #[test]
    fn no_text_makes_it_panic(text in ".{0,200}") {
        let _ = parse(&text);
    }
}

#[test]
fn a_worker_added_later_has_no_port() {
    let mut cluster = sample();
    cluster.nodes.push(cluster.next_node(None, false).unwrap());
    let text = render_text(&cluster, None);
    let old = parse(&text).unwrap();
    let mut cluster = old.cluster.clone();
    cluster.nodes.push(cluster.next_node(None, false).unwrap());
    cluster.nodes.push(cluster.next_node(None, true).unwrap());
    let text = render_text(&cluster, Some(&old.raw));
    let again = parse(&text).unwrap();
    assert_eq!(again.cluster, cluster);
    let ports: Vec<i64> =
        again.raw["Nodes"].as_array().unwrap().iter().map(|n| n["Port"].as_i64().unwrap()).collect();
    assert_eq!(ports, [8443, 8443, 0, 8443]);
    // It stays so.
    assert_eq!(render_text(&cluster, Some(&again.raw)), text);
}

#[test]
fn a_node_carries_what_is_its_own() {
    let mut cluster = sample();
    cluster.nodes[0].config = rich(Some(4), None);
    cluster.node_defaults.labels.insert("all".into(), "yes".into());
    let again = parse(&render_text(&cluster, None)).unwrap().cluster;
    assert_eq!(again, cluster);
    let config = again.config_of(&again.nodes[0]);
    assert_eq!((config.cpus, config.memory_mib, config.labels.len()), (Some(4), Some(3072), 2));
    // minikube's own part of the entry is as it was.
    let doc = render(&cluster, None);
    assert_eq!(doc["Nodes"][0].as_object().unwrap().len(), 7);
    let keys = doc["Manykube"]["Nodes"][""].as_object().unwrap();
    assert_eq!(keys.keys().next().unwrap(), "CPUs");
}

#[test]
fn addresses_that_were_chosen() {
    let mut cluster = sample();
    let ip = |last| Ipv4Addr::new(192, 168, 49, last);
    cluster.nodes[0].ip = ip(77);
    cluster.extras.load_balancers = Some((ip(100), ip(109)));
    let doc = render(&cluster, None);
    assert_eq!(doc["StaticIP"], "192.168.49.77");
    assert_eq!(doc["KubernetesConfig"]["LoadBalancerEndIP"], "192.168.49.109");
    assert_eq!(parse(&Value::Object(doc.clone()).to_string()).unwrap().cluster, cluster);
    // Of another network, or the wrong way round: as usual.
    for (first, last) in [("10.0.0.1", "10.0.0.9"), ("192.168.49.9", "192.168.49.8"), ("192.168.49.9", "")] {
        let mut doc = doc.clone();
        doc["KubernetesConfig"]["LoadBalancerStartIP"] = first.into();
        doc["KubernetesConfig"]["LoadBalancerEndIP"] = last.into();
        let read = parse(&Value::Object(doc).to_string()).unwrap().cluster;
        assert_eq!(read.extras.load_balancers, None, "{first} {last}");
    }
    // The next node is the second one, wherever the first one is.
    let next = cluster.next_node(None, false).unwrap();
    assert_eq!((next.name.as_str(), next.ip), ("m02", ip(3)));
}

#[test]
fn files_of_before_are_read() {
    let mut doc = render(&sample(), None);
    doc["Manykube"] = json!({
        "SchemaVersion": 1, "Subnet": "192.168.49.0/24", "PodCIDR": "10.244.0.0/16",
        "Nodes": { "": { "CPUs": 4, "Memory": null } },
    });
    let cluster = parse(&Value::Object(doc.clone()).to_string()).unwrap().cluster;
    assert_eq!(cluster.nodes[0].config, NodeConfig { cpus: Some(4), ..NodeConfig::default() });
    assert!(cluster.node_defaults.is_empty());
    // An older render wrote null where there was nothing.
    doc["Manykube"]["Nodes"] = json!({});
    assert_eq!(parse(&Value::Object(doc).to_string()).unwrap().cluster, sample());
}
