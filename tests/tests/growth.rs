//! One control plane becomes three, five, three and one again, the first of all among those that
//! go, while clients read and write: no write that was acknowledged is lost. Nodes come both ways, the fast one
//! and by `kubeadm join`.

use std::time::Instant;

use system_tests::etcd::etcdctl;
use system_tests::traffic::KINDS;
use system_tests::{Footprint, Lab, Traffic};

const VIP: &str = "192.168.49.254";

#[test]
fn control_planes_come_and_go_under_load() {
    let lab = Lab::new();
    let before = Footprint::take(&lab);
    lab.manykube(&["start"]).ok();
    let traffic = Traffic::start(&lab, &format!("{VIP}:8443"));

    for (change, planes) in [
        (&["node", "add", "--control-plane"][..], 2),
        (&["node", "add", "--control-plane", "--join=kubeadm"], 3),
        (&["node", "add", "w", "--join=kubeadm"], 3),
        (&["node", "add", "--count=2", "--control-plane"], 5),
        (&["node", "delete", "m05"], 4),
        // The primary, and whoever is the primary after it.
        (&["node", "delete", "minikube"], 3),
        (&["node", "delete", "m02"], 2),
        (&["node", "delete", "m03"], 1),
    ] {
        let began = Instant::now();
        let took = lab.manykube(change).ok().elapsed;
        traffic.calm(std::time::Duration::from_secs(1));
        let [read, write, kept] = KINDS.map(|kind| traffic.disturbance(kind, began));
        println!(
            "{:38} {:5.1} s, then {planes}; longest gap in ms: reads {}, writes {}, kept connection {}; in vain: {} {} {}",
            change.join(" "),
            took.as_secs_f32(),
            read.gap.as_millis(),
            write.gap.as_millis(),
            kept.gap.as_millis(),
            read.failed,
            write.failed,
            kept.failed
        );
        for (why, count) in traffic.reasons(began) {
            println!("    {count} x {why}");
        }
        voters(&lab, planes);
        if change.contains(&"--join=kubeadm") {
            // Whoever took it in: it is a node like the others.
            lab.nothing_to_do();
        }
    }
    println!("{} acknowledged writes, none lost", traffic.nothing_is_lost(&lab));
    lab.manykube(&["delete"]).ok();
    before.assert_nothing_left();
}

/// As many members of etcd as control planes, all of them with a vote.
fn voters(lab: &Lab, planes: usize) {
    let nodes = ["get", "nodes", "-l", "node-role.kubernetes.io/control-plane", "-o", "name"];
    let names = lab.kubectl(&nodes).ok().stdout;
    let first = names.lines().next().and_then(|n| n.strip_prefix("node/")).expect("a control plane");
    let members = etcdctl(lab, first, "member list").ok().stdout;
    let voting = members.lines().filter(|l| l.contains("started") && l.trim_end().ends_with("false")).count();
    assert_eq!((names.lines().count(), voting), (planes, planes), "{names}{members}");
}
