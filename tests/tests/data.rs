//! Ways to lose data with ordinary commands, tried one after the other: nodes that stop and start, disks that lose a
//! directory, notes that are wrong, recoveries that are not needed or that fail.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use system_tests::etcd::{self, etcdctl};
use system_tests::{Footprint, Lab, Machine, eventually, health};

const SOON: Duration = Duration::from_secs(60);
const POD: Duration = Duration::from_secs(120);
const PLANES: [&str; 3] = ["minikube", "minikube-m02", "minikube-m03"];

#[test]
fn no_command_loses_data() {
    let lab = Lab::new();
    let before = Footprint::take(&lab);
    lab.manykube(&["start", "--ha"]).ok();
    for machine in PLANES {
        std::fs::write(kept_file(&lab, machine), machine).expect("a file in the node");
    }
    volume(&lab, "minikube-m02");

    a_frozen_member_stops_no_operation(&lab);
    a_control_plane_that_stops_and_starts(&lab);
    a_lost_directory_of_etcd(&lab);
    a_note_does_not_cost_a_voter_its_data(&lab);
    recoveries(&lab);
    a_lost_majority_is_said_at_once(&lab);
    a_member_beside_a_broken_api_server_leaves(&lab);
    a_lost_machine_is_no_empty_cluster(&lab);

    lab.manykube(&["delete"]).ok();
    before.assert_nothing_left();
}

/// In the node's /var, where volumes and images are.
fn kept_file(lab: &Lab, machine: &str) -> PathBuf {
    lab.home().join("machines").join(machine).join("var/kept")
}

#[track_caller]
fn files_are_kept(lab: &Lab) {
    for machine in PLANES {
        let kept = std::fs::read_to_string(kept_file(lab, machine));
        assert_eq!(kept.ok().as_deref(), Some(machine), "{machine} lost its disk");
    }
}

/// A pod that stays on a node, with a volume of the default storage class.
fn volume(lab: &Lab, node: &str) {
    let busybox = lab.busybox();
    lab.apply(&format!(
        "{{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {{name: data}}, spec: {{accessModes: [ReadWriteOnce], \
         resources: {{requests: {{storage: 1Mi}}}}}}}}\n---\n\
         {{apiVersion: apps/v1, kind: StatefulSet, metadata: {{name: keeper}}, spec: {{serviceName: keeper, \
         selector: {{matchLabels: {{app: keeper}}}}, template: {{metadata: {{labels: {{app: keeper}}}}, spec: {{\
         terminationGracePeriodSeconds: 1, nodeSelector: {{kubernetes.io/hostname: {node}}}, \
         containers: [{{name: main, image: '{busybox}', command: [sh, -c, '[ -e /data/text ] || echo first > /data/text; sleep 1000000'], \
         volumeMounts: [{{name: data, mountPath: /data}}]}}], \
         volumes: [{{name: data, persistentVolumeClaim: {{claimName: data}}}}]}}}}}}}}",
    ));
    volume_has(lab, "first");
    lab.kubectl(&["exec", "keeper-0", "--", "sh", "-c", "echo written > /data/text; sync"]).ok();
}

#[track_caller]
fn volume_has(lab: &Lab, text: &str) {
    eventually("what is in the volume", POD, || {
        let read = lab.kubectl(&["exec", "keeper-0", "--", "cat", "/data/text"]);
        if read.code == 0 { Ok(read) } else { Err(read.stderr) }
    });
    let read = lab.kubectl(&["exec", "keeper-0", "--", "cat", "/data/text"]).ok();
    assert_eq!(read.text(), text);
}

fn configmap(lab: &Lab, name: &str) {
    eventually("a write", SOON, || {
        let ran = lab.kubectl(&["create", "configmap", name]);
        if ran.code == 0 || ran.stderr.contains("AlreadyExists") { Ok(()) } else { Err(ran.stderr) }
    });
}

#[track_caller]
fn configmaps_are_kept(lab: &Lab, names: &[&str]) {
    for name in names {
        eventually(name, SOON, || {
            let ran = lab.kubectl(&["get", "configmap", name]);
            if ran.code == 0 || ran.stderr.contains("NotFound") { Ok(ran.code) } else { Err(ran.stderr) }
        });
        lab.kubectl(&["get", "configmap", name]).ok();
    }
}

/// By machine.
fn member_id(lab: &Lab, machine: &str) -> u64 {
    let list = eventually("etcd's members", SOON, || {
        let ran = etcdctl(lab, "minikube", "member list -w json");
        if ran.code == 0 { Ok(ran.json()) } else { Err(ran.stderr) }
    });
    let members = list["members"].as_array().cloned().unwrap_or_default();
    let id = |m: &Value| (m["name"] == machine).then(|| m["ID"].as_u64()).flatten();
    members.iter().find_map(id).unwrap_or_else(|| panic!("{machine} is no member: {members:?}"))
}

/// Finding 14: of four members one is frozen, and another one leaves. A third cannot be restarted meanwhile.
fn a_frozen_member_stops_no_operation(lab: &Lab) {
    // A `node add` that was cut short leaves a learner, and etcd takes only one at a time.
    etcdctl(lab, "minikube", "member add ghost --learner --peer-urls=https://192.168.49.99:2380").ok();
    lab.manykube(&["node", "add", "--control-plane"]).ok();
    let members = etcdctl(lab, "minikube", "member list").ok().stdout;
    assert!(members.lines().count() == 4 && !members.contains("ghost"), "{members}");
    lab.manykube(&["fault", "freeze", "minikube", "--for=10m"]).ok();
    eventually("an API without the frozen node", SOON, || {
        let ran = lab.kubectl(&["--request-timeout=5s", "get", "--raw", "/readyz"]);
        if ran.code == 0 { Ok(()) } else { Err(ran.stderr) }
    });
    let machine = Machine::find(lab, "minikube-m02").expect("the machine runs");
    let refused = lab.manykube(&["node", "set", "m02", "--extra-config=kubelet.max-pods=99"]).exit(80);
    assert!(refused.stderr.contains("etcd would have no majority"), "{}", refused.stderr);
    assert_eq!(Machine::find(lab, "minikube-m02"), Some(machine), "it was restarted");
    lab.manykube(&["node", "delete", "m04"]).ok();
    lab.manykube(&["fault", "heal", "minikube"]).ok();
    lab.manykube(&["start"]).ok();
    health::check(lab);
}

/// Finding 1: the node keeps its volumes and all its files.
fn a_control_plane_that_stops_and_starts(lab: &Lab) {
    let id = member_id(lab, "minikube-m02");
    lab.manykube(&["node", "stop", "m02"]).ok();
    lab.manykube(&["node", "start", "m02"]).ok();
    assert_ne!(member_id(lab, "minikube-m02"), id, "it has not left etcd");
    files_are_kept(lab);
    volume_has(lab, "written");
    health::check(lab);
}

/// Finding 1: the same of a node whose etcd lost its directory.
fn a_lost_directory_of_etcd(lab: &Lab) {
    etcd::lose_data(lab, "minikube-m03");
    lab.manykube(&["start"]).ok();
    files_are_kept(lab);
    health::check(lab);
}

/// Findings 3 and 19: a note of this version, and a mark of an earlier one, of members that never left.
fn a_note_does_not_cost_a_voter_its_data(lab: &Lab) {
    let ids = ["minikube-m02", "minikube-m03"].map(|m| member_id(lab, m));
    let notes = lab.home().join("profiles/minikube/membership");
    std::fs::create_dir_all(&notes).expect("make the directory of notes");
    std::fs::write(notes.join("minikube-m02"), "unsure").expect("a note");
    std::fs::write(etcd::data(lab, "minikube-m03").with_file_name("outside"), "").expect("a mark");
    lab.manykube(&["stop"]).ok();
    lab.manykube(&["start"]).ok();
    assert_eq!(["minikube-m02", "minikube-m03"].map(|m| member_id(lab, m)), ids, "they have never left");
    files_are_kept(lab);
    volume_has(lab, "written");
    health::check(lab);
}

/// Findings 4, 5 and 6.
fn recoveries(lab: &Lab) {
    configmap(lab, "early");
    Machine::find(lab, "minikube-m03").expect("the machine runs").kill();
    configmap(lab, "late");
    lab.manykube(&["start", "--recover-from=minikube-m03"]).exit(14);
    lab.manykube(&["stop"]).ok();
    // All three have their data.
    let refused = lab.manykube(&["start", "--recover-from=minikube-m03"]).exit(14);
    assert!(refused.stderr.contains("3 of 3"), "{}", refused.stderr);

    // One whose data is damaged cannot be taken, and costs the others nothing.
    let db = etcd::data(lab, "minikube").join("member/snap/db");
    let file = std::fs::OpenOptions::new().write(true).open(db).expect("etcd's data");
    file.set_len(4096).expect("damage it");
    let failed = lab.manykube(&["start", "--recover-from=minikube", "--force"]).exit(80);
    assert!(failed.stderr.contains("minikube-m02, minikube-m03"), "{}", failed.stderr);
    let recovered = lab.manykube(&["start", "--recover-from=m02"]).ok();
    println!("recovered from another node in {:.1} s", recovered.elapsed.as_secs_f32());
    configmaps_are_kept(lab, &["early", "late"]);
    files_are_kept(lab);
    volume_has(lab, "written");
    health::check(lab);

    // Of copies that differ the freshest is taken, however many there are.
    Machine::find(lab, "minikube").expect("the machine runs").kill();
    configmap(lab, "later");
    lab.manykube(&["stop"]).ok();
    lab.manykube(&["start", "--recover-from", "--force"]).ok();
    configmaps_are_kept(lab, &["early", "late", "later"]);
    files_are_kept(lab);
    health::check(lab);
}

/// Finding 5: after a restart no etcd answers.
fn a_lost_majority_is_said_at_once(lab: &Lab) {
    lab.manykube(&["stop"]).ok();
    etcd::lose_data(lab, "minikube");
    etcd::lose_data(lab, "minikube-m02");
    let lost = lab.manykube(&["start"]).exit(80);
    println!("a lost majority is said after {:.1} s", lost.elapsed.as_secs_f32());
    assert!(lost.stderr.contains("only minikube-m03 still has its data"), "{}", lost.stderr);
    assert!(lost.stderr.contains("--recover-from"), "{}", lost.stderr);
    lab.manykube(&["start", "--recover-from"]).ok();
    configmaps_are_kept(lab, &["early", "late", "later"]);
    files_are_kept(lab);
    volume_has(lab, "written");
    health::check(lab);
}

/// Finding 2: etcd is asked, not the API server beside it.
fn a_member_beside_a_broken_api_server_leaves(lab: &Lab) {
    lab.manykube(&["node", "delete", "m03"]).ok();
    lab.manykube(&["fault", "kill-process", "m02", "apiserver", "--for=10m"]).ok();
    eventually("an API server that is down", SOON, || {
        let status = lab.manykube(&["status", "-n", "m02", "-f", "{{.APIServer}}"]);
        if status.stdout.contains("Running") { Err(status.stdout) } else { Ok(()) }
    });
    lab.manykube(&["node", "delete", "m02"]).ok();
    configmaps_are_kept(lab, &["early", "late", "later"]);
    health::check(lab);
}

/// Finding 10.
fn a_lost_machine_is_no_empty_cluster(lab: &Lab) {
    lab.manykube(&["stop"]).ok();
    let (machine, aside) = (lab.home().join("machines/minikube"), lab.path("aside"));
    std::fs::rename(&machine, &aside).expect("lose the machine");
    let gone = lab.manykube(&["start"]).exit(80);
    assert!(gone.stderr.contains("minikube") && gone.stderr.contains("delete"), "{}", gone.stderr);
    assert!(!machine.exists(), "an empty machine was made");
    std::fs::rename(&aside, &machine).expect("put it back");
    lab.manykube(&["start"]).ok();
    configmaps_are_kept(lab, &["early", "late", "later"]);
}
