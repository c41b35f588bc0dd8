use std::collections::BTreeMap;

use super::*;
use crate::cluster::{Network, Wait};
use crate::{Cni, DriverKind, VipBy, address, names};

fn cluster(control_planes: u32, workers: u32) -> Cluster {
    let subnet = "192.168.49.0/24".parse().unwrap();
    let node = |i: u32| Node {
        name: names::node(i),
        ip: address::node_ip(subnet, i).unwrap(),
        control_plane: i <= control_planes,
        worker: true,
        kubernetes_version: "v1.37.1".into(),
        config: crate::NodeConfig::default(),
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
        wait: Wait { components: vec![] },
        cni: Cni::BuiltIn,
        vip_by: VipBy::Agent,
        node_defaults: crate::NodeConfig::default(),
        extras: crate::cluster::Extras::default(),
    }
}

fn up() -> NodeStatusInput {
    NodeStatusInput {
        host: Host::Running,
        kubelet_running: true,
        apiserver: Apiserver::Running,
        var_used_percent: 10,
        vip_term: None,
    }
}

fn statuses(cluster: &Cluster, seen: &[NodeStatusInput], kubeconfig: Kubeconfig) -> Vec<NodeStatus> {
    of_cluster(cluster, seen, kubeconfig)
}

fn done() -> History {
    let step = |name: &str| HistoryEntry::Step { name: name.into(), message: "…".into() };
    History { entries: vec![step("Initial Minikube Setup"), step("Done")], age_seconds: 5 }
}

#[test]
fn one_running_node() {
    let c = cluster(1, 0);
    let s = statuses(&c, &[NodeStatusInput { vip_term: Some(0), ..up() }], Kubeconfig::Configured);
    assert_eq!(exit_code(&s), 0);
    assert_eq!(
        nodes_json(&s),
        concat!(
            r#"{"Name":"demo","Host":"Running","Kubelet":"Running","APIServer":"Running","#,
            r#""Kubeconfig":"Configured","Worker":false,"#,
            r#""IP":"192.168.49.2","Primary":true,"VirtualIP":"192.168.49.254","VirtualIPHolder":"demo"}"#
        )
    );
    assert_eq!(
        s[0].text(),
        concat!(
            "demo\ntype: Control Plane\nhost: Running\nkubelet: Running\napiserver: Running\n",
            "kubeconfig: Configured\nip: 192.168.49.2\nprimary: true\nvirtual-ip: 192.168.49.254\n\n"
        )
    );
    assert_eq!(cluster_word(&s, false, Some(&done())).name, "OK");
    assert_eq!(cluster_word(&s, false, None).name, "Running");
}

#[test]
fn the_exit_code_is_a_bitmask() {
    let c = cluster(1, 1);
    let with = |a: NodeStatusInput, b: NodeStatusInput, k| exit_code(&statuses(&c, &[a, b], k));
    assert_eq!(with(up(), up(), Kubeconfig::Configured), 0);
    assert_eq!(with(up(), up(), Kubeconfig::Misconfigured), 4);
    assert_eq!(with(up(), NodeStatusInput::down(Host::Stopped), Kubeconfig::Configured), 7);
    let paused = NodeStatusInput { apiserver: Apiserver::Paused, kubelet_running: false, ..up() };
    assert_eq!(with(paused, up(), Kubeconfig::Configured), 2);
    let full = NodeStatusInput { var_used_percent: 99, ..up() };
    assert_eq!(with(full, up(), Kubeconfig::Configured), 1);
    assert_eq!(exit_code(&[]), 7);
    assert_eq!(nodes_json(&[]), "null");
}

#[test]
fn a_stopped_host_gives_its_word_to_all() {
    let c = cluster(1, 1);
    let s = statuses(&c, &[NodeStatusInput::down(Host::Stopped), up()], Kubeconfig::Configured);
    assert_eq!([&*s[0].kubelet, &*s[0].apiserver, &*s[0].kubeconfig], ["Stopped"; 3]);
    assert_eq!(
        [&*s[1].kubelet, &*s[1].apiserver, &*s[1].kubeconfig],
        ["Running", "Irrelevant", "Irrelevant"]
    );
    assert!(nodes_json(&s).starts_with("[{"));
    assert_eq!(s[1].text(), "demo-m02\ntype: Worker\nhost: Running\nkubelet: Running\nip: 192.168.49.3\n\n");
}

#[test]
fn one_node_holds_the_virtual_address() {
    let c = cluster(3, 0);
    let has = |term| NodeStatusInput { vip_term: term, ..up() };
    let holder = |terms: [Option<u64>; 3]| {
        let s = statuses(&c, &terms.map(has), Kubeconfig::Configured);
        assert!(s.iter().all(|n| n.holder == s[0].holder));
        let marked: String =
            s.iter().filter(|n| n.text().contains("virtual-ip: ")).map(|n| &*n.name).collect();
        assert_eq!(marked, s[0].holder);
        assert_eq!(s[0].field("VirtualIPHolder").unwrap(), marked);
        marked
    };
    assert_eq!(holder([None, Some(4), None]), "demo-m02");
    assert_eq!(holder([Some(4), None, Some(5)]), "demo-m03", "the last election counts");
    assert_eq!(holder([None, None, None]), "");
}

#[test]
fn words_of_highly_available_clusters() {
    let c = cluster(5, 0);
    for (healthy, want) in [(0, "Stopped"), (1, "Stopped"), (2, "Degraded"), (3, "HAppy"), (5, "HAppy")] {
        let seen: Vec<_> =
            (0..5).map(|i| if i < healthy { up() } else { NodeStatusInput::down(Host::Stopped) }).collect();
        let s = statuses(&c, &seen, Kubeconfig::Configured);
        assert_eq!(cluster_word(&s, true, Some(&done())).name, want, "{healthy}");
    }
}

#[test]
fn what_is_under_way_counts_for_ten_minutes() {
    let c = cluster(1, 0);
    let s = statuses(&c, &[up()], Kubeconfig::Configured);
    let step = |name: &str| HistoryEntry::Step { name: name.into(), message: "…".into() };
    let mut h =
        History { entries: vec![step("Initial Minikube Setup"), step("Starting Node")], age_seconds: 5 };
    let word = cluster_word(&s, false, Some(&h));
    assert_eq!((word.code, &*word.name, &*word.step), (Code::STARTING, "Starting", "Starting Node"));
    h.age_seconds = 601;
    assert_eq!(cluster_word(&s, false, Some(&h)).name, "OK");
    h.age_seconds = 5;
    h.entries.push(HistoryEntry::Error { exit_code: Some(26), message: "full".into() });
    assert_eq!(cluster_word(&s, false, Some(&h)).code, Code::INSUFFICIENT_STORAGE);
    h.entries.push(HistoryEntry::Error { exit_code: Some(80), message: "broken".into() });
    let word = cluster_word(&s, false, Some(&h));
    assert_eq!((word.code.0, &*word.name), (80, "Error"));
    h.entries = vec![step("Deleting")];
    assert_eq!(cluster_word(&s, false, Some(&h)).name, "");
}

#[test]
fn the_cluster_document() {
    let c = cluster(1, 1);
    let s = statuses(&c, &[up(), up()], Kubeconfig::Configured);
    let doc = cluster_json("demo", &s, &cluster_word(&s, false, Some(&done())), "v0.1.0");
    assert_eq!(
        doc.to_string(),
        concat!(
            r#"{"Name":"demo","StatusCode":200,"StatusName":"OK","BinaryVersion":"v0.1.0","#,
            r#""Components":{"kubeconfig":{"Name":"kubeconfig","StatusCode":200,"StatusName":"OK"}},"Nodes":["#,
            r#"{"Name":"demo","StatusCode":200,"StatusName":"OK","Components":{"#,
            r#""apiserver":{"Name":"apiserver","StatusCode":200,"StatusName":"OK"},"#,
            r#""kubelet":{"Name":"kubelet","StatusCode":200,"StatusName":"OK"}},"IP":"192.168.49.2","Primary":true},"#,
            r#"{"Name":"demo-m02","StatusCode":200,"StatusName":"OK","Components":{"#,
            r#""kubelet":{"Name":"kubelet","StatusCode":200,"StatusName":"OK"}},"IP":"192.168.49.3","Primary":false}],"#,
            r#""VirtualIP":"192.168.49.254","VirtualIPHolder":""}"#
        )
    );
}
