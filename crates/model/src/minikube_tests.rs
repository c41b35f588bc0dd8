use proptest::prelude::*;

use super::*;
use crate::config_file::{self, parse, render, render_text};

/// What v1.30 wrote for one node: no port of the cluster, no virtual address, `Mount` a boolean.
fn v1_30() -> Value {
    json!({
        "Name": "old", "KeepContext": false, "EmbedCerts": false, "Memory": 4000, "CPUs": 2, "DiskSize": 20000,
        "Driver": "docker", "CertExpiration": 94_608_000_000_000_000_i64, "Mount": false,
        "MountString": "/home/me:/minikube-host", "ExposedPorts": [],
        "KubernetesConfig": {
            "KubernetesVersion": "v1.26.3", "ClusterName": "old", "Namespace": "default",
            "APIServerName": "minikubeCA", "APIServerNames": null, "APIServerIPs": null,
            "DNSDomain": "cluster.local", "ContainerRuntime": "docker", "CRISocket": "",
            "NetworkPlugin": "cni", "FeatureGates": "", "ServiceCIDR": "10.96.0.0/12",
            "ExtraOptions": null, "ShouldLoadCachedImages": true, "EnableDefaultCNI": false, "CNI": "",
            "NodeIP": "", "NodePort": 8443, "NodeName": "",
        },
        "Nodes": [{
            "Name": "", "IP": "192.168.49.2", "Port": 8443, "KubernetesVersion": "v1.26.3",
            "ContainerRuntime": "docker", "ControlPlane": true, "Worker": true,
        }],
        "Addons": { "default-storageclass": true, "storage-provisioner": true },
        "VerifyComponents": { "apiserver": true, "system_pods": true }, "ScheduledStop": null,
    })
}

/// What v1.38 writes for three control planes and a worker in virtual machines.
fn v1_38() -> Value {
    let node = |name: &str, last: u8, control: bool| {
        json!({
            "Name": name, "IP": format!("192.168.39.{last}"), "Port": if control { 9443 } else { 0 },
            "KubernetesVersion": "v1.36.2", "ContainerRuntime": "crio", "ControlPlane": control, "Worker": true,
        })
    };
    let mut doc = v1_30();
    doc["Driver"] = "kvm2".into();
    doc["Nodes"] =
        json!([node("", 212, true), node("m02", 36, true), node("m03", 7, true), node("m04", 99, false)]);
    doc["KubernetesConfig"]["APIServerHAVIP"] = "192.168.39.254".into();
    doc["KubernetesConfig"]["KubernetesVersion"] = "v1.36.2".into();
    doc["KubernetesConfig"]["ContainerRuntime"] = "crio".into();
    doc["KubernetesConfig"]["CNI"] = "calico".into();
    doc["KubernetesConfig"]["FeatureGates"] = "AllAlpha=true,Bad-One=1".into();
    doc["KubernetesConfig"]["ExtraOptions"] = json!([
        { "Component": "kubelet", "Key": "max-pods", "Value": "50" },
        { "Component": "kubeadm", "Key": "pod-network-cidr", "Value": "10.50.0.0/16" },
    ]);
    doc["APIServerPort"] = 9443.into();
    doc.as_object_mut().unwrap().shift_remove("Mount");
    doc
}

#[test]
fn one_node_of_v1_30() {
    let file = parse(&v1_30().to_string()).unwrap();
    let c = &file.cluster;
    assert_eq!((c.name.as_str(), c.api_port, c.memory_mib, c.cpus), ("old", 8443, 4000, 2));
    assert_eq!(c.network.subnet.to_string(), "192.168.49.0/24");
    assert_eq!(c.nodes[0].ip, Ipv4Addr::new(192, 168, 49, 2));
    assert!(c.node_defaults.is_empty(), "a mount that is switched off is none");
    let migrated = file.migrated.unwrap();
    assert_eq!(migrated.driver, "docker");
    assert_eq!(migrated.notes, ["containerd runs its containers instead of docker"]);
    assert_eq!(machines(&file.raw), ["old"]);
}

#[test]
fn many_nodes_of_v1_38() {
    let file = parse(&v1_38().to_string()).unwrap();
    let c = &file.cluster;
    let ips: Vec<u8> = c.nodes.iter().map(|n| n.ip.octets()[3]).collect();
    assert_eq!(ips, [212, 36, 7, 99], "addresses that can be ours are kept");
    assert_eq!(c.vip(), Ipv4Addr::new(192, 168, 39, 254));
    assert!(c.is_ha());
    assert_eq!(c.api_port, 9443);
    assert_eq!(c.network.pod_cidr.to_string(), "10.50.0.0/16");
    assert_eq!(c.node_defaults.extra_config[&Component::Kubelet]["max-pods"], "50");
    assert_eq!(c.node_defaults.feature_gates.len(), 1);
    assert_eq!(c.node_defaults.mounts[0].to_string(), "/home/me:/minikube-host");
    let notes = file.migrated.unwrap().notes.join("; ");
    for part in ["instead of crio", "instead of calico", "Bad-One=1"] {
        assert!(notes.contains(part), "{notes}");
    }
    assert_eq!(machines(&file.raw), ["old", "old-m02", "old-m03", "old-m04"]);
}

#[test]
fn what_is_written_then_is_ours_and_keeps_the_rest() {
    let mut doc = v1_38();
    doc["FromTheFuture"] = json!([1]);
    let file = parse(&doc.to_string()).unwrap();
    let again = parse(&render_text(&file.cluster, Some(&file.raw))).unwrap();
    assert_eq!(again.cluster, file.cluster);
    assert_eq!(again.migrated, None);
    assert_eq!(again.raw["FromTheFuture"][0], 1);
    assert_eq!(again.raw["Driver"], "native");
    assert_eq!(again.raw["KubernetesConfig"]["ContainerRuntime"], "containerd");
    assert_eq!(render(&again.cluster, Some(&again.raw)), again.raw);
}

#[test]
fn addresses_that_cannot_be_ours_are_given_anew() {
    for ips in [["192.168.49.2", "192.168.49.2"], ["192.168.49.1", "192.168.49.2"], ["10.0.0.5", "10.0.1.5"]]
    {
        let mut doc = v1_38();
        doc["Nodes"].as_array_mut().unwrap().truncate(2);
        for (i, ip) in ips.iter().enumerate() {
            doc["Nodes"][i]["IP"] = (*ip).into();
        }
        let file = parse(&doc.to_string()).unwrap();
        let got: Vec<u8> = file.cluster.nodes.iter().map(|n| n.ip.octets()[3]).collect();
        assert_eq!(got, [2, 3], "{ips:?}");
    }
    // A start that failed before the machine had one.
    let mut doc = v1_30();
    doc["Nodes"][0]["IP"] = "".into();
    let file = parse(&doc.to_string()).unwrap();
    assert_eq!(file.cluster.nodes[0].ip, Ipv4Addr::new(192, 168, 49, 2));
}

#[test]
fn what_is_no_cluster_is_said() {
    let mut doc = v1_30();
    doc["KubernetesConfig"]["KubernetesVersion"] = "v0.0.0".into();
    let why = parse(&doc.to_string()).unwrap_err().to_string();
    assert!(why.contains("--no-kubernetes"), "{why}");
    doc = v1_30();
    doc["Memory"] = "much".into();
    assert!(matches!(parse(&doc.to_string()), Err(ConfigError::Content(_))));
}

proptest! {
    /// Whatever is missing or of another type: an answer, and what is answered can be written and read.
    #[test]
    fn any_part_may_be_missing(
        picks in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>(), any::<bool>()), 0..12)
    ) {
        let mut doc = v1_38();
        for (pick, deep, drop) in picks {
            let part = if deep { &mut doc["KubernetesConfig"] } else { &mut doc };
            let Some(map) = part.as_object_mut().filter(|m| !m.is_empty()) else { continue };
            let key = map.keys().nth(pick.index(map.len())).cloned().unwrap_or_default();
            if drop { map.shift_remove(&key); } else { map.insert(key, json!({})); }
        }
        if let Ok(file) = parse(&doc.to_string()) {
            let text = config_file::render_text(&file.cluster, Some(&file.raw));
            prop_assert_eq!(parse(&text).unwrap().cluster, file.cluster);
        }
    }
}
