//! Many control planes, as seeds/004 walks through them: lose one, add one, add a worker, use it all.
//! The parts share a cluster, so they are one test.

use std::collections::BTreeSet;
use std::time::Duration;

use system_tests::{Footprint, Lab, Ran, eventually, http_get};

const SOON: Duration = Duration::from_secs(60);
const VIP: &str = "192.168.49.254";

#[test]
fn many_nodes_come_and_go() {
    let lab = Lab::new();
    let before = Footprint::take(&lab);

    start(&lab);
    etcd_has(&lab, "ha-demo", &["ha-demo", "ha-demo-m02", "ha-demo-m03"]);
    delete_a_control_plane(&lab);
    add_a_control_plane(&lab);
    add_a_worker(&lab);
    hello(&lab);
    a_worker_rests(&lab);
    a_control_plane_rests(&lab);
    the_primary_goes(&lab);
    stop_and_start(&lab);
    delete_leaves_nothing(&lab, &before);
}

fn mk(lab: &Lab, args: &[&str]) -> Ran {
    let ran = lab.manykube(&[&["-p", "ha-demo"], args].concat());
    println!("{}: {:.1} s", args.join(" "), ran.elapsed.as_secs_f32());
    ran
}

fn word(lab: &Lab) -> String {
    let list = lab.manykube(&["profile", "list", "-o", "json"]).ok().json();
    list["valid"][0]["Status"].as_str().unwrap_or_default().to_owned()
}

fn ready_nodes(lab: &Lab) -> BTreeSet<String> {
    let nodes = lab.kubectl(&["get", "nodes", "-o", "json"]).ok().json();
    let items = nodes["items"].as_array().cloned().unwrap_or_default();
    let is_ready = |n: &&serde_json::Value| {
        let conditions = n["status"]["conditions"].as_array();
        conditions.into_iter().flatten().any(|c| c["type"] == "Ready" && c["status"] == "True")
    };
    items.iter().filter(is_ready).filter_map(|n| Some(n["metadata"]["name"].as_str()?.to_owned())).collect()
}

#[track_caller]
fn ready(lab: &Lab, want: &[&str]) {
    let want: BTreeSet<String> = want.iter().map(|n| (*n).to_owned()).collect();
    eventually("exactly these nodes are Ready", SOON, || {
        let now = ready_nodes(lab);
        if now == want { Ok(()) } else { Err(format!("{now:?}, not {want:?}")) }
    });
}

fn start(lab: &Lab) {
    mk(lab, &["start", "--ha"]).ok();
    lab.manykube(&["profile", "ha-demo"]).ok();
    ready(lab, &["ha-demo", "ha-demo-m02", "ha-demo-m03"]);
    eventually("HAppy", SOON, || if word(lab) == "HAppy" { Ok(()) } else { Err(word(lab)) });
    let status = mk(lab, &["status"]).ok().stdout;
    assert_eq!(status.matches("type: Control Plane").count(), 3, "{status}");
    assert_eq!(status.matches("apiserver: Running").count(), 3, "{status}");
    let config = lab.kubectl(&["config", "view", "--minify"]).ok().stdout;
    assert!(config.contains(&format!("server: https://{VIP}:8443")), "{config}");
}

/// As the seed asks: by ssh, kubectl exec into the etcd pod, and etcdctl there.
#[track_caller]
fn etcd_has(lab: &Lab, node: &str, want: &[&str]) {
    let certs = "/var/lib/minikube/certs/etcd";
    let etcdctl = format!(
        "etcdctl --endpoints https://127.0.0.1:2379 --cacert {certs}/ca.crt --cert {certs}/server.crt --key {certs}/server.key member list"
    );
    let line = format!(
        "kubectl --kubeconfig=/var/lib/minikube/kubeconfig exec -n kube-system etcd-{node} -- {etcdctl}"
    );
    let list = eventually("etcd's members", SOON, || {
        let ran = mk(lab, &["ssh", "-n", node, "--", &line]);
        if ran.code == 0 { Ok(ran.stdout) } else { Err(ran.stderr) }
    });
    let members: Vec<Vec<&str>> = list.trim().lines().map(|l| l.trim().split(", ").collect()).collect();
    let names: BTreeSet<&str> = members.iter().map(|m| m[2]).collect();
    assert_eq!(names, want.iter().copied().collect(), "{list}");
    for member in &members {
        assert_eq!((member[1], member[5]), ("started", "false"), "{list}");
    }
}

fn delete_a_control_plane(lab: &Lab) {
    let out = mk(lab, &["node", "delete", "m02"]).ok().stdout;
    assert!(out.contains("Node m02 was successfully deleted."), "{out}");
    ready(lab, &["ha-demo", "ha-demo-m03"]);
    assert_eq!(word(lab), "Degraded");
    etcd_has(lab, "ha-demo-m03", &["ha-demo", "ha-demo-m03"]);
}

fn add_a_control_plane(lab: &Lab) {
    let out = mk(lab, &["node", "add", "--control-plane"]).ok().stdout;
    assert!(out.contains("Adding node m04 to cluster ha-demo as [worker control-plane]"), "{out}");
    assert!(out.contains("Successfully added m04 to ha-demo!"), "{out}");
    ready(lab, &["ha-demo", "ha-demo-m03", "ha-demo-m04"]);
    assert_eq!(word(lab), "HAppy");
    etcd_has(lab, "ha-demo-m04", &["ha-demo", "ha-demo-m03", "ha-demo-m04"]);
}

fn add_a_worker(lab: &Lab) {
    let out = mk(lab, &["node", "add"]).ok().stdout;
    assert!(out.contains("Adding node m05 to cluster ha-demo as [worker]"), "{out}");
    ready(lab, &["ha-demo", "ha-demo-m03", "ha-demo-m04", "ha-demo-m05"]);
    let list = mk(lab, &["node", "list"]).ok().stdout;
    assert!(list.ends_with("ha-demo-m04\t192.168.49.5\nha-demo-m05\t192.168.49.6\n"), "{list}");
}

fn hello(lab: &Lab) {
    let images = mk(lab, &["ssh", "--", "ctr", "-n", "k8s.io", "images", "ls", "-q"]).ok().stdout;
    let image = images.lines().map(str::trim).find(|i| i.contains("/busybox:")).expect("a busybox image");
    lab.apply(&format!(
        r#"
apiVersion: apps/v1
kind: Deployment
metadata: {{ name: hello }}
spec:
  replicas: 3
  strategy: {{ type: RollingUpdate, rollingUpdate: {{ maxUnavailable: 100% }} }}
  selector: {{ matchLabels: {{ app: hello }} }}
  template:
    metadata: {{ labels: {{ app: hello }} }}
    spec:
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            - labelSelector: {{ matchLabels: {{ app: hello }} }}
              topologyKey: kubernetes.io/hostname
      terminationGracePeriodSeconds: 1
      containers:
        - name: hello-from
          image: {image}
          command: [sh, -c, 'mkdir /www; echo "Hello from $(hostname)" > /www/index.html; trap exit TERM; httpd -f -p 80 -h /www & wait']
          ports: [{{ name: http, containerPort: 80 }}]
          readinessProbe: {{ httpGet: {{ port: 80, path: / }}, periodSeconds: 1 }}
---
apiVersion: v1
kind: Service
metadata: {{ name: hello }}
spec:
  type: NodePort
  selector: {{ app: hello }}
  ports: [{{ protocol: TCP, nodePort: 31000, port: 80, targetPort: http }}]
"#
    ));
    lab.kubectl(&["rollout", "status", "deployment/hello", "--timeout=90s"]).ok();
    let on =
        lab.kubectl(&["get", "pods", "-l", "app=hello", "-o", "jsonpath={.items[*].spec.nodeName}"]).ok();
    let nodes: BTreeSet<&str> = on.stdout.split_whitespace().collect();
    assert_eq!(nodes.len(), 3, "{nodes:?}");
    for host in [2, 4, 5, 6] {
        let mut heard = BTreeSet::new();
        eventually("all pods answer at every node's address", SOON, || {
            heard.insert(http(&format!("192.168.49.{host}:31000"))?);
            if heard.len() == 3 { Ok(()) } else { Err(format!("192.168.49.{host}: {heard:?}")) }
        });
    }
}

/// The last line of the answer.
fn http(address: &str) -> Result<String, String> {
    let answer = http_get(address)?;
    let last = answer.trim_end().lines().last().unwrap_or_default().to_owned();
    if last.starts_with("Hello from hello-") { Ok(last) } else { Err(answer) }
}

fn uid(lab: &Lab, node: &str) -> String {
    lab.kubectl(&["get", "node", node, "-o", "jsonpath={.metadata.uid}"]).ok().stdout
}

fn a_worker_rests(lab: &Lab) {
    let before = uid(lab, "ha-demo-m05");
    mk(lab, &["node", "stop", "m05"]).ok();
    assert!(mk(lab, &["status", "-n", "m05"]).stdout.contains("host: Stopped"));
    mk(lab, &["node", "start", "m05"]).ok();
    assert_eq!(uid(lab, "ha-demo-m05"), before);
    let again = mk(lab, &["node", "start", "m05"]).ok().stdout;
    assert!(again.contains("m05 is already running"), "{again}");
}

fn a_control_plane_rests(lab: &Lab) {
    mk(lab, &["node", "stop", "ha-demo-m03"]).ok();
    etcd_has(lab, "ha-demo", &["ha-demo", "ha-demo-m04"]);
    assert_eq!(word(lab), "Degraded");
    mk(lab, &["node", "start", "m03"]).ok();
    etcd_has(lab, "ha-demo", &["ha-demo", "ha-demo-m03", "ha-demo-m04"]);
}

fn the_primary_goes(lab: &Lab) {
    mk(lab, &["node", "delete", "ha-demo"]).ok();
    let primary = ["get", "nodes", "-l", "minikube.k8s.io/primary=true", "-o", "name"];
    assert_eq!(lab.kubectl(&primary).ok().text(), "node/ha-demo-m03");
    etcd_has(lab, "ha-demo-m03", &["ha-demo-m03", "ha-demo-m04"]);
    assert_eq!(mk(lab, &["ip"]).ok().text(), "192.168.49.4");
}

fn stop_and_start(lab: &Lab) {
    let nodes = ["ha-demo-m03", "ha-demo-m04", "ha-demo-m05"];
    let before = nodes.map(|n| uid(lab, n));
    let stopped = mk(lab, &["stop"]).ok().stdout;
    assert!(stopped.contains("3 nodes stopped."), "{stopped}");
    mk(lab, &["start"]).ok();
    ready(lab, &nodes);
    assert_eq!(nodes.map(|n| uid(lab, n)), before);
    eventually("hello after the restart", SOON, || http("192.168.49.6:31000"));
}

fn delete_leaves_nothing(lab: &Lab, before: &Footprint) {
    mk(lab, &["delete"]).ok();
    before.assert_nothing_left();
    for dir in ["profiles", "machines", "networks"] {
        let entries: Vec<_> =
            std::fs::read_dir(lab.home().join(dir)).into_iter().flatten().flatten().collect();
        assert!(entries.is_empty(), "{dir} still has {entries:?}");
    }
}
