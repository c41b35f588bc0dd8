//! Three control planes and a worker: the loss of one control plane is survived, told of, and mended
//! by `start`. What clients notice of it is in `failover.rs`.

use std::time::Duration;

use system_tests::machine::holder;
use system_tests::{Footprint, Lab, eventually};

const SOON: Duration = Duration::from_secs(60);

#[test]
fn one_control_plane_may_be_lost() {
    let lab = Lab::new();
    let before = Footprint::take(&lab);
    let started = lab.manykube(&["start", "--ha", "--nodes=4"]).ok();
    println!("start of 3 control planes and a worker: {:.1} s", started.elapsed.as_secs_f32());

    all_is_well(&lab);
    pods_reach_each_other_across_nodes(&lab);
    the_holder_dies(&lab);
    let again = lab.manykube(&["start"]).ok();
    println!("start with one control plane lost: {:.1} s", again.elapsed.as_secs_f32());
    all_is_well(&lab);

    lab.manykube(&["delete"]).ok();
    before.assert_nothing_left();
}

fn all_is_well(lab: &Lab) {
    let profiles = lab.manykube(&["profile", "list", "-o", "json"]).ok().json();
    assert_eq!(profiles["valid"][0]["Status"], "HAppy");
    lab.manykube(&["status"]).ok();
    let nodes = lab.kubectl(&["get", "nodes", "--no-headers"]).ok();
    let ready = nodes.stdout.lines().filter(|l| l.contains(" Ready ")).count();
    assert_eq!(ready, 4, "{}", nodes.stdout);
    let config = lab.kubectl(&["config", "view", "-o", "jsonpath={.clusters[0].cluster.server}"]).ok();
    assert_eq!(config.text(), "https://192.168.49.254:8443");
    let members = eventually("etcd's members", SOON, || {
        let list = "etcdctl --cacert /var/lib/minikube/certs/etcd/ca.crt --cert /var/lib/minikube/certs/etcd/server.crt \
                    --key /var/lib/minikube/certs/etcd/server.key member list";
        let ran = lab.kubectl(&["-n", "kube-system", "exec", "etcd-minikube", "--", "/bin/sh", "-c", list]);
        if ran.code == 0 { Ok(ran.stdout) } else { Err(ran.stderr) }
    });
    let voting = members.lines().filter(|l| l.contains("started") && l.trim_end().ends_with("false")).count();
    assert_eq!(voting, 3, "{members}");
}

fn pods_reach_each_other_across_nodes(lab: &Lab) {
    let image = lab.busybox();
    lab.apply(&format!(
        r#"
apiVersion: v1
kind: Pod
metadata: {{ name: server }}
spec:
  nodeName: minikube-m04
  terminationGracePeriodSeconds: 0
  containers: [{{ name: c, image: {image}, command: [sh, -c, 'mkdir /w; echo across > /w/index.html; exec httpd -f -p 8080 -h /w'] }}]
---
apiVersion: v1
kind: Pod
metadata: {{ name: client }}
spec:
  nodeName: minikube-m02
  terminationGracePeriodSeconds: 0
  containers: [{{ name: c, image: {image}, command: [sleep, "100000"] }}]
"#
    ));
    lab.kubectl(&["wait", "--for=condition=Ready", "pod/server", "pod/client", "--timeout=90s"]).ok();
    let ip = lab.kubectl(&["get", "pod", "server", "-o", "jsonpath={.status.podIP}"]).ok().stdout;
    let url = format!("http://{ip}:8080");
    let answer = eventually("a pod on another node", SOON, || {
        let ran = lab.kubectl(&["exec", "client", "--", "wget", "-qO-", "-T", "2", &url]);
        if ran.code == 0 { Ok(ran.stdout) } else { Err(ran.stderr) }
    });
    assert_eq!(answer.trim(), "across");
    lab.kubectl(&["exec", "client", "--", "nslookup", "kubernetes.default.svc.cluster.local"]).ok();
}

/// Whoever holds the virtual address loses its power: another takes over, and nothing is forgotten.
fn the_holder_dies(lab: &Lab) {
    lab.kubectl(&["create", "configmap", "kept", "--from-literal=text=before"]).ok();
    holder(lab, "192.168.49.254").kill();
    let text = eventually("the API after the loss of the holder", SOON, || {
        let ran =
            lab.kubectl(&["--request-timeout=2s", "get", "configmap", "kept", "-o", "jsonpath={.data.text}"]);
        if ran.code == 0 { Ok(ran.stdout) } else { Err(ran.stderr) }
    });
    assert_eq!(text, "before");
    // The kernel takes a moment to end all that ran in the machine.
    eventually("status tells of the loss", SOON, || {
        let status = lab.manykube(&["status"]);
        if status.code == 7 { Ok(()) } else { Err(status.stdout) }
    });
    let profiles = lab.manykube(&["profile", "list", "-o", "json"]).ok().json();
    assert_eq!(profiles["valid"][0]["Status"], "Degraded");
}
