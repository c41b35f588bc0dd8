//! `fault`: what it says is so, it ends when it should, and nothing is left of it.

use std::net::TcpStream;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use system_tests::{Footprint, Lab, Machine, eventually};

const SOON: Duration = Duration::from_secs(60);
/// Kubelets that listen on their nodes.
const M02: &str = "192.168.49.3:10250";
const M03: &str = "192.168.49.4:10250";

#[test]
fn faults_come_and_go() {
    let lab = Lab::new();
    let before = Footprint::take(&lab);
    // A start that fails leaves as little as one that does not.
    let wrong = ["start", "--extra-config=apiserver.no-such-flag=1", "--wait-timeout=8s"];
    assert_ne!(lab.manykube(&wrong).code, 0);
    lab.manykube(&["delete"]).ok();
    before.assert_nothing_left();

    // Kubernetes itself would take minutes to give a dead node up.
    lab.manykube(&["start", "--nodes=3", "--node-grace=10s"]).ok();
    refusals(&lab);
    frozen(&lab);
    cut(&lab);
    killed(&lab);
    programs(&lab);
    watcher_is_lost(&lab);
    full(&lab);

    // All of them at once, and their watchers.
    lab.manykube(&["fault", "kill", "m02", "--for=10m"]).ok();
    lab.manykube(&["fault", "freeze", "m03", "--for=10m"]).ok();
    lab.manykube(&["fault", "cut", "minikube", "--from=m03", "--for=10m"]).ok();
    lab.manykube(&["fault", "slow", "minikube", "--loss=1", "--for=10m"]).ok();
    lab.manykube(&["fault", "kill-process", "minikube", "etcd", "--for=10m"]).ok();
    assert_eq!(list(&lab).len(), 5);
    lab.manykube(&["delete"]).ok();
    before.assert_nothing_left();
}

fn list(lab: &Lab) -> Vec<Value> {
    lab.manykube(&["fault", "list", "-o", "json"]).ok().json().as_array().expect("a list").clone()
}

/// A kubelet's port takes connections from the host.
fn answers(address: &str) -> bool {
    TcpStream::connect_timeout(&address.parse().expect("an address"), Duration::from_millis(500)).is_ok()
}

/// One node's kubelet reaches another's.
fn reaches(lab: &Lab, node: &str, address: &str) -> bool {
    let (ip, port) = address.split_once(':').expect("an address and a port");
    let line = format!("timeout 1 bash -c '</dev/tcp/{ip}/{port}'");
    lab.manykube(&["ssh", "-n", node, "--", &line]).code == 0
}

fn status(lab: &Lab, node: &str) -> String {
    lab.manykube(&["status", "-n", node]).stdout
}

#[track_caller]
fn soon(what: &str, mut is_so: impl FnMut() -> bool) {
    eventually(what, SOON, || if is_so() { Ok(()) } else { Err("not yet".to_owned()) });
}

fn refusals(lab: &Lab) {
    for (words, code, says) in [
        (vec!["kill", "m09"], 85, "has no node"),
        (vec!["cut", "m02", "--from=m02"], 14, "from itself"),
        (vec!["freeze", "m02", "--for=0"], 14, "at least 1s"),
        (vec!["slow", "m02"], 14, "--delay"),
        (vec!["slow", "m02", "--loss=200"], 14, "not a percentage"),
        (vec!["heal", "m02", "--all"], 14, "not both"),
        (vec!["kill-process", "m02", "etcd"], 80, "kubelet"),
        (vec!["fill-disk", "m02"], 16, "--disk-size"),
    ] {
        let ran = lab.manykube(&[vec!["fault"], words].concat()).exit(code);
        assert!(ran.stderr.contains(says), "{}", ran.stderr);
    }
    assert!(list(lab).is_empty());
}

fn frozen(lab: &Lab) {
    lab.manykube(&["fault", "freeze", "m02", "--for=3s"]).ok();
    let text = status(lab, "m02");
    assert!(text.contains("host: Paused") && text.contains("fault: frozen ("), "{text}");
    let shown = lab.manykube(&["status", "-n", "m02", "-o", "json"]).json();
    assert_eq!(shown["Faults"][0]["Kind"], "frozen");
    soon("it goes on by itself", || list(lab).is_empty() && !status(lab, "m02").contains("fault"));
    soon("its agent answers", || status(lab, "m02").contains("kubelet: Running"));
    lab.manykube(&["fault", "freeze", "m02"]).ok();
    let entered = lab.manykube(&["ssh", "-n", "m02", "--", "true"]).exit(83);
    assert!(entered.stdout.contains("state=Paused"), "{}", entered.stdout);
    lab.manykube(&["fault", "thaw", "m02"]).ok();
    assert!(list(lab).is_empty());
}

fn cut(lab: &Lab) {
    assert!(answers(M02) && reaches(lab, "m03", M02));
    lab.manykube(&["fault", "cut", "m02", "--from", "m03"]).ok();
    assert!(answers(M02), "the host is none of the nodes it was cut from");
    assert!(!reaches(lab, "m03", M02) && !reaches(lab, "m02", M03));
    lab.manykube(&["fault", "cut", "m02", "--for", "2s"]).ok();
    assert!(!answers(M02) && answers(M03));
    soon("it is mended by itself", || answers(M02) && list(lab).is_empty());
    lab.manykube(&["fault", "slow", "m02", "--loss", "100%"]).ok();
    assert!(!answers(M02));
    // The other end of a cut heals it, too.
    lab.manykube(&["fault", "cut", "m03", "--from", "minikube"]).ok();
    lab.manykube(&["fault", "heal", "minikube"]).ok();
    assert_eq!(list(lab).len(), 1);
    lab.manykube(&["fault", "heal"]).ok();
    assert!(answers(M02) && list(lab).is_empty());
    still_cut_after_a_boot(lab);
    // It can do nothing while it stands still, but its kernel takes connections until it is cut off.
    lab.manykube(&["fault", "freeze", "m02"]).ok();
    assert!(answers(M02));
    lab.manykube(&["fault", "cut", "m02"]).ok();
    assert!(!answers(M02) && status(lab, "m02").contains("host: Paused"));
    lab.manykube(&["fault", "heal"]).ok();
    assert!(answers(M02) && list(lab).is_empty());
    // Delays need netem, which not every kernel has.
    let slow = lab.manykube(&["fault", "slow", "m02", "--delay=50ms", "--for=1s"]);
    match slow.code {
        0 => soon("it is over", || list(lab).is_empty()),
        36 => assert!(slow.stderr.contains("netem") && list(lab).is_empty(), "{}", slow.stderr),
        _ => drop(slow.ok()),
    }
}

/// A node that boots while it is cut off does not know its way back either.
fn still_cut_after_a_boot(lab: &Lab) {
    lab.manykube(&["fault", "cut", "m02"]).ok();
    lab.manykube(&["fault", "kill", "m02", "--for=1s"]).ok();
    soon("it is up and loses all packets", || {
        let words =
            ["ssh", "-n", "m02", "--", "ip -br addr show eth0; nft list table netdev manykube_faults"];
        let said = lab.manykube(&words).stdout;
        said.contains("192.168.49.3/24") && said.matches("policy drop").count() == 2
    });
    assert!(!answers(M02) && list(lab).len() == 1);
    lab.manykube(&["fault", "heal"]).ok();
    soon("it is on the network", || answers(M02));
    // The document is changed while a node is off, too.
    lab.manykube(&["fault", "cut", "m02", "--from=m03"]).ok();
    lab.manykube(&["fault", "kill", "m02"]).ok();
    lab.manykube(&["fault", "heal", "m03"]).ok();
    lab.manykube(&["fault", "heal"]).ok();
    soon("its kubelet is reached", || reaches(lab, "m03", M02));
}

/// A pod that would rather be on m02, and on which node it is ready.
fn web(lab: &Lab) -> String {
    format!(
        r#"
apiVersion: apps/v1
kind: Deployment
metadata: {{ name: web }}
spec:
  selector: {{ matchLabels: {{ app: web }} }}
  template:
    metadata: {{ labels: {{ app: web }} }}
    spec:
      affinity:
        nodeAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
            - weight: 100
              preference: {{ matchExpressions: [{{ key: kubernetes.io/hostname, operator: In, values: [minikube-m02] }}] }}
      containers: [{{ name: web, image: "{}", command: [sleep, "1000000"] }}]
"#,
        lab.busybox()
    )
}

fn ready_on(lab: &Lab) -> Vec<String> {
    let ran = lab.kubectl(&["get", "pods", "-l", "app=web", "-o", "json"]);
    let list: Value = serde_json::from_str(&ran.stdout).unwrap_or_default();
    let pods = list["items"].as_array().cloned().unwrap_or_default();
    let ready = |pod: &&Value| pod["status"]["containerStatuses"][0]["ready"] == true;
    pods.iter().filter(ready).filter_map(|pod| Some(pod["spec"]["nodeName"].as_str()?.to_owned())).collect()
}

/// Whoever makes volumes is on the node that dies.
fn provisioner_to_m02(lab: &Lab) {
    let (cordon, uncordon) =
        (["cordon", "minikube", "minikube-m03"], ["uncordon", "minikube", "minikube-m03"]);
    lab.kubectl(&cordon).ok();
    lab.kubectl(&["-n", "local-path-storage", "delete", "pod", "--all", "--grace-period=1"]).ok();
    lab.kubectl(&["-n", "local-path-storage", "rollout", "status", "deploy", "--timeout=60s"]).ok();
    lab.kubectl(&uncordon).ok();
    let nodes = "jsonpath={.items[*].spec.nodeName}";
    let on = lab.kubectl(&["-n", "local-path-storage", "get", "pods", "-o", nodes]).ok();
    assert_eq!(on.text(), "minikube-m02");
}

fn killed(lab: &Lab) {
    lab.apply(&web(lab));
    soon("the pod is on m02", || ready_on(lab) == ["minikube-m02"]);
    provisioner_to_m02(lab);
    lab.manykube(&["fault", "kill", "m02"]).ok();
    assert!(Machine::find(lab, "minikube-m02").is_none());
    let text = status(lab, "m02");
    assert!(text.contains("host: Stopped") && text.contains("fault: killed"), "{text}");
    lab.manykube(&["fault", "kill", "m02"]).exit(83);
    // NotReady after the grace, and its pods are replaced after as much again.
    soon("the pod is elsewhere", || ready_on(lab).iter().any(|node| node != "minikube-m02"));
    lab.apply(&format!(
        "{{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {{name: late}}, spec: {{accessModes: [ReadWriteOnce], \
         resources: {{requests: {{storage: 1Mi}}}}}}}}\n---\n\
         {{apiVersion: v1, kind: Pod, metadata: {{name: late}}, spec: {{terminationGracePeriodSeconds: 0, \
         nodeSelector: {{kubernetes.io/hostname: minikube-m03}}, containers: [{{name: main, image: '{}', command: [sleep, '1000000'], \
         volumeMounts: [{{name: data, mountPath: /data}}]}}], volumes: [{{name: data, persistentVolumeClaim: {{claimName: late}}}}]}}}}",
        lab.busybox()
    ));
    lab.kubectl(&["wait", "--for=condition=Ready", "pod/late", "--timeout=60s"]).ok();
    lab.manykube(&["fault", "heal", "m02"]).ok();
    assert!(Machine::find(lab, "minikube-m02").is_some());
    lab.manykube(&["fault", "kill", "m03", "--for=1s"]).ok();
    soon("its power comes back", || Machine::find(lab, "minikube-m03").is_some() && list(lab).is_empty());
    lab.kubectl(&["wait", "--for=condition=Ready", "node", "--all", "--timeout=60s"]).ok();
}

/// What the node's agent says of its kubelet.
fn kubelet(lab: &Lab, node: &str) -> Value {
    let state = lab.manykube(&["ssh", "-n", node, "--", "/usr/local/bin/manykube agent state"]).ok().json();
    let services = state["services"].as_array().expect("services");
    services.iter().find(|s| s["name"] == "kubelet").expect("a kubelet").clone()
}

fn programs(lab: &Lab) {
    let first = kubelet(lab, "m02");
    lab.manykube(&["fault", "kill-process", "m02", "kubelet"]).ok();
    soon("another kubelet", || {
        kubelet(lab, "m02")["pid"].is_u64() && kubelet(lab, "m02")["pid"] != first["pid"]
    });
    lab.manykube(&["fault", "kill-process", "m03", "kubelet", "--for=2s"]).ok();
    assert_eq!(list(lab)[0]["Kind"], "process-killed");
    soon("it may live again", || list(lab).is_empty() && kubelet(lab, "m03")["running"] == true);
    assert!(kubelet(lab, "m03")["restarts"].as_u64() > Some(1));
    lab.manykube(&["fault", "kill-process", "minikube", "apiserver"]).ok();
    soon("the API answers again", || lab.kubectl(&["get", "nodes"]).code == 0);
}

/// Nobody undoes a fault whose watcher died, but `start` does.
fn watcher_is_lost(lab: &Lab) {
    // Long enough to find the watcher alive on a busy host.
    lab.manykube(&["fault", "cut", "m02", "--for=6s"]).ok();
    let text = std::fs::read(lab.home().join("profiles/minikube/faults.json")).expect("a record");
    let record: Value = serde_json::from_slice(&text).expect("JSON");
    let watcher = record[0]["watcher"]["pid"].as_i64().and_then(|p| i32::try_from(p).ok());
    kill(Pid::from_raw(watcher.expect("a watcher")), Signal::SIGKILL).expect("kill -9");
    std::thread::sleep(Duration::from_secs(7));
    assert!(!answers(M02) && list(lab).len() == 1);
    let started = lab.manykube(&["start"]).ok();
    assert!(started.stdout.contains("Undone: minikube-m02 cut off"), "{}", started.stdout);
    assert!(answers(M02) && list(lab).is_empty());
    lab.manykube(&["status"]).ok();
}

/// A disk of a node's own is as large as was said, and can be full without anybody else's being so.
fn full(lab: &Lab) {
    lab.manykube(&["node", "add", "--disk-size=2000mb"]).ok();
    let refused = lab.manykube(&["node", "set", "m04", "--disk-size=3000mb"]).exit(14);
    assert!(refused.stderr.contains("diskSize of node minikube-m04 cannot be changed"), "{}", refused.stderr);
    let of_node =
        |path: &str| lab.kubectl(&["get", "node", "minikube-m04", "-o", &format!("jsonpath={path}")]);
    let capacity = of_node("{.status.capacity.ephemeral-storage}").ok().text().to_owned();
    let bytes = match capacity.strip_suffix("Ki") {
        Some(kib) => kib.parse::<u64>().map(|kib| kib << 10),
        None => capacity.parse(),
    };
    assert!(bytes.is_ok_and(|bytes| bytes > 1500 << 20 && bytes < 2000 << 20), "{capacity}");

    let write = "dd if=/dev/zero of=/var/lib/kubelet/pods/x bs=1M count=8 conv=fsync";
    let writes = |node: &str| lab.manykube(&["ssh", "-n", node, "--", write]);
    lab.manykube(&["fault", "fill-disk", "m04"]).ok();
    assert!(status(lab, "m04").contains("fault: disk full"));
    let none_left = writes("m04");
    assert!(none_left.code != 0 && none_left.stderr.contains("No space left"));
    writes("m03").ok();
    let pressure = || of_node("{.status.conditions[?(@.type==\"DiskPressure\")].status}").text().to_owned();
    soon("the node says that its disk is full", || pressure() == "True");
    // It is full also after a loss of power, until somebody heals it.
    lab.manykube(&["fault", "kill", "m04", "--for=1s"]).ok();
    soon("its power comes back", || list(lab).len() == 1 && Machine::find(lab, "minikube-m04").is_some());
    soon("it can be entered", || lab.manykube(&["ssh", "-n", "m04", "--", "true"]).code == 0);
    assert_ne!(writes("m04").code, 0);
    // What the host writes for a node finds its way there all the same.
    lab.manykube(&["node", "set", "m04", "--extra-config=kubelet.max-pods=42"]).ok();
    assert_eq!(of_node("{.status.capacity.pods}").ok().text(), "42");
    assert_ne!(writes("m04").code, 0);
    lab.manykube(&["fault", "heal", "m04"]).ok();
    writes("m04").ok();
    soon("the node says that there is space", || pressure() == "False");

    // Whoever is still in the machine that was keeps its disk; two at once would ruin it.
    let mut looking = Machine::find(lab, "minikube-m04").expect("the machine runs").look_around();
    lab.manykube(&["node", "stop", "m04"]).ok();
    let refused = lab.manykube(&["node", "start", "m04"]);
    assert!(refused.code != 0 && refused.stderr.contains("still in use"), "{}", refused.stderr);
    looking.kill().and_then(|()| looking.wait()).expect("end the look");
    lab.manykube(&["node", "start", "m04"]).ok();
    writes("m04").ok();
    lab.manykube(&["node", "delete", "m04"]).ok();
}
