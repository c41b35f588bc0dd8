use proptest::prelude::*;

use super::*;
use crate::samples::{any_cluster, sample};

/// Changes the second node of a cluster of one control plane and two workers.
fn change_of(edit: impl Fn(&mut Node)) -> Result<Diff, Vec<Fixed>> {
    let old = sample(1, 2);
    let mut new = old.clone();
    edit(&mut new.nodes[1]);
    diff(&old, &new)
}

#[test]
fn the_table() {
    type Edit = fn(&mut Node);
    let table: [(&str, Takes, Edit); 12] = [
        ("cpus", Takes::Live, |n| n.config.cpus = Some(7)),
        ("memory", Takes::Live, |n| n.config.memory_mib = Some(7000)),
        ("labels", Takes::Live, |n| drop(n.config.labels.insert("a".into(), "b".into()))),
        ("taints", Takes::Live, |n| n.config.taints.push("a:NoExecute".parse().unwrap())),
        ("kubernetesVersion", Takes::Restart, |n| n.kubernetes_version = "v1.36.0".into()),
        ("extraConfig", Takes::Restart, |n| {
            n.config
                .extra_config
                .insert(model::node_config::Component::Kubelet, [("v".into(), "1".into())].into());
        }),
        ("featureGates", Takes::Restart, |n| {
            n.config.feature_gates.insert("A".into(), true);
        }),
        ("mounts", Takes::Restart, |n| n.config.mounts.push("/a:/b".parse().unwrap())),
        ("ports", Takes::Restart, |n| n.config.ports.push("80:80".parse().unwrap())),
        ("binaries", Takes::Restart, |n| {
            n.config.binaries.insert(model::node_config::Binary::Kubelet, "/k".into());
        }),
        ("files", Takes::Restart, |n| {
            let from = model::node_config::FileSource::Content("x".into());
            n.config.files.push(model::node_config::PlacedFile { path: "/x".into(), mode: 0o644, from });
        }),
        ("patches", Takes::Restart, |n| n.config.patches.containerd.push("a = 1".into())),
    ];
    for (what, effect, edit) in table {
        let got = change_of(edit).unwrap();
        assert_eq!((got.added.len(), got.removed.len(), got.cluster.len()), (0, 0, 0), "{what}");
        assert_eq!(got.changed.len(), 1, "{what}");
        assert_eq!((got.changed[0].name.as_str(), got.changed[0].takes()), ("m02", effect), "{what}");
        assert_eq!(got.changed[0].changes[0].what, what);
    }
}

#[test]
fn what_cannot_be_changed_says_how() {
    let role = change_of(|n| n.control_plane = true).unwrap_err();
    assert!(
        role[0]
            .to_string()
            .starts_with("role of node demo-m02 cannot be changed from worker to control-plane: delete")
    );
    assert_eq!(change_of(|n| n.config.disk_mib = Some(3000)).unwrap_err()[0].what, "diskSize");
    assert_eq!(change_of(|n| n.config.base_image = Some("x".into())).unwrap_err()[0].what, "baseImage");
    assert_eq!(
        change_of(|n| n.config.container_runtime = Some("docker".into())).unwrap_err()[0].what,
        "containerRuntime"
    );
    // Saying what is the case anyway changes nothing.
    assert!(change_of(|n| n.config.container_runtime = Some("containerd".into())).unwrap().is_empty());
    let old = sample(1, 1);
    let mut new = old.clone();
    new.network.pod_cidr = "10.9.0.0/16".parse().unwrap();
    new.api_port = 6443;
    let fixed: Vec<_> = diff(&old, &new).unwrap_err().iter().map(|f| f.what).collect();
    assert_eq!(fixed, ["networking.podSubnet", "apiServer.port"]);
}

#[test]
fn nodes_come_and_go() {
    let (old, mut new) = (sample(1, 2), sample(1, 3));
    new.nodes.remove(1);
    let got = diff(&old, &new).unwrap();
    assert_eq!(got.added.iter().map(|n| n.name.as_str()).collect::<Vec<_>>(), ["m04"]);
    assert_eq!(got.removed.iter().map(|n| n.name.as_str()).collect::<Vec<_>>(), ["m02"]);
    assert!(got.changed.is_empty() && got.cluster.is_empty());
}

#[test]
fn what_all_inherit_changes_all() {
    let old = sample(1, 2);
    let mut new = old.clone();
    new.memory_mib = 4096;
    new.nodes[2].config.memory_mib = Some(old.memory_mib);
    let got = diff(&old, &new).unwrap();
    assert_eq!(got.changed.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(), ["", "m02"]);
    // Where it stands makes no difference.
    let mut moved = old.clone();
    moved.node_defaults.labels.insert("a".into(), "b".into());
    let mut each = old.clone();
    each.nodes.iter_mut().for_each(|n| drop(n.config.labels.insert("a".into(), "b".into())));
    assert!(diff(&moved, &each).unwrap().is_empty());
}

proptest! {
    #[test]
    fn nothing_differs_from_itself(c in any_cluster()) {
        prop_assert!(diff(&c, &c).unwrap().is_empty());
        let mut shuffled = c.clone();
        shuffled.nodes.reverse();
        prop_assert!(diff(&c, &shuffled).unwrap().is_empty());
    }

    #[test]
    fn every_node_is_accounted_for(a in any_cluster(), b in any_cluster()) {
        let mut b = b;
        // The same frame, so that only nodes differ.
        (b.network, b.api_port, b.cni, b.extras) =
            (a.network.clone(), a.api_port, a.cni.clone(), a.extras.clone());
        (b.node_defaults.base_image, b.node_defaults.container_runtime, b.disk_mib) =
            (a.node_defaults.base_image.clone(), a.node_defaults.container_runtime.clone(), a.disk_mib);
        for node in &mut b.nodes {
            (node.config.base_image, node.config.container_runtime) = (None, None);
            if let Some(old) = a.nodes.iter().find(|n| n.name == node.name) {
                node.config.disk_mib = old.config.disk_mib;
                (node.config.base_image, node.config.container_runtime, node.control_plane) =
                    (old.config.base_image.clone(), old.config.container_runtime.clone(), old.control_plane);
            }
        }
        let (there, back) = (diff(&a, &b).unwrap(), diff(&b, &a).unwrap());
        prop_assert_eq!(a.nodes.len() + there.added.len() - there.removed.len(), b.nodes.len());
        prop_assert_eq!(there.added.len(), back.removed.len());
        prop_assert_eq!(there.changed.len(), back.changed.len());
    }
}
