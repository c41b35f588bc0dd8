//! One real node, used as its user would. The parts share a cluster, so they are one test.

use std::time::Duration;

use system_tests::{Footprint, Lab, eventually, http_get};

const POD: Duration = Duration::from_secs(60);

#[test]
fn a_node_from_nothing_to_nothing() {
    let lab = Lab::new();
    let before = Footprint::take(&lab);

    start(&lab);
    second_start_changes_nothing(&lab);
    status_tells_the_truth(&lab);
    it_is_a_kubeadm_cluster(&lab);
    workloads(&lab);
    services(&lab);
    port_forward(&lab);
    dns(&lab);
    volume(&lab, "written before the stop");
    stop_and_start(&lab);
    volume_has(&lab, "written before the stop");
    delete_leaves_nothing(&lab, &before);
}

fn start(lab: &Lab) {
    let plan = lab.manykube(&["start", "--dry-run"]).ok();
    assert!(plan.stdout.contains("create the machine"), "{}", plan.stdout);
    assert!(!lab.home().join("profiles/minikube/config.json").exists(), "a dry run changed something");

    let started = lab.manykube(&["start"]).ok();
    println!("start: {:.1} s", started.elapsed.as_secs_f32());
    assert!(started.stdout.contains("Done! kubectl is now configured"), "{}", started.stdout);
    assert_eq!(started.stderr.trim(), "", "a clean start has nothing to complain about");
    let node = lab.kubectl(&["get", "node", "minikube", "-o", "json"]).ok().json();
    let ready = node["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .any(|c| c["type"] == "Ready" && c["status"] == "True");
    assert!(ready, "start returned before the node was Ready");
    assert_eq!(node["spec"]["podCIDR"], "10.244.0.0/24");
    assert_eq!(node["metadata"]["labels"]["minikube.k8s.io/primary"], "true");
}

fn second_start_changes_nothing(lab: &Lab) {
    let uid =
        |lab: &Lab| lab.kubectl(&["get", "node", "minikube", "-o", "jsonpath={.metadata.uid}"]).ok().stdout;
    let first = uid(lab);
    lab.nothing_to_do();
    let again = lab.manykube(&["start"]).ok();
    println!("second start: {:.0} ms", again.elapsed.as_secs_f32() * 1000.0);
    assert_eq!(uid(lab), first);
}

fn status_tells_the_truth(lab: &Lab) {
    let status = lab.manykube(&["status"]).ok();
    println!("status: {:.0} ms", status.elapsed.as_secs_f32() * 1000.0);
    for line in [
        "minikube",
        "type: Control Plane",
        "host: Running",
        "kubelet: Running",
        "apiserver: Running",
        "kubeconfig: Configured",
    ] {
        assert!(status.stdout.lines().any(|l| l == line), "no line {line:?} in\n{}", status.stdout);
    }
    let json = lab.manykube(&["status", "-o", "json"]).ok().json();
    assert_eq!(
        (&json["Name"], &json["Host"], &json["Worker"]),
        (&"minikube".into(), &"Running".into(), &false.into())
    );
    assert_eq!(lab.manykube(&["status", "-f", "{{.Host}}/{{.APIServer}}"]).ok().stdout, "Running/Running");
    let profiles = lab.manykube(&["profile", "list", "-o", "json"]).ok().json();
    assert_eq!(profiles["valid"][0]["Status"], "OK");
    assert_eq!(lab.manykube(&["node", "list"]).ok().stdout, "minikube\t192.168.49.2\n");
    assert_eq!(lab.manykube(&["ip"]).ok().text(), "192.168.49.2");
    assert!(lab.manykube(&["logs"]).ok().stdout.contains("==> kubelet"));
}

/// What kubeadm makes, kubeadm can work with by hand.
fn it_is_a_kubeadm_cluster(lab: &Lab) {
    let config = lab.kubectl(&["-n", "kube-system", "get", "cm", "kubeadm-config", "-o", "yaml"]).ok();
    assert!(
        config.stdout.contains("controlPlaneEndpoint: control-plane.minikube.internal:8443"),
        "{}",
        config.stdout
    );
    lab.manykube(&["ssh", "--", "kubeadm", "token", "create"]).ok();
    let certs = lab.manykube(&["ssh", "--", "kubeadm", "certs", "check-expiration"]).ok();
    assert!(!certs.stdout.contains("MISSING"), "{}", certs.stdout);
    // The virtual address answers from the first day, in the node and on the host.
    lab.manykube(&["ssh", "--", "kubectl", "--kubeconfig", "/etc/kubernetes/admin.conf", "get", "nodes"])
        .ok();
    lab.kubectl(&["--server", "https://192.168.49.254:8443", "get", "nodes"]).ok();
}

fn workloads(lab: &Lab) {
    let image = lab.busybox();
    lab.apply(&format!(
        r#"
apiVersion: apps/v1
kind: Deployment
metadata: {{ name: web }}
spec:
  replicas: 2
  selector: {{ matchLabels: {{ app: web }} }}
  template:
    metadata: {{ labels: {{ app: web }} }}
    spec:
      containers:
        - name: web
          image: {image}
          command: [sh, -c, 'mkdir /www; hostname > /www/index.html; echo serving; trap exit TERM; httpd -f -v -p 8080 -h /www & wait']
          ports: [{{ containerPort: 8080 }}]
          readinessProbe: {{ httpGet: {{ port: 8080, path: / }}, periodSeconds: 1 }}
---
apiVersion: v1
kind: Service
metadata: {{ name: web }}
spec:
  type: NodePort
  selector: {{ app: web }}
  ports: [{{ port: 80, targetPort: 8080, nodePort: 30080 }}]
---
apiVersion: v1
kind: Pod
metadata: {{ name: client }}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{{ name: client, image: {image}, command: [sh, -c, 'trap exit TERM; sleep 100000 & wait'] }}]
"#
    ));
    lab.kubectl(&["rollout", "status", "deployment/web", "--timeout=60s"]).ok();
    lab.kubectl(&["wait", "--for=condition=Ready", "pod/client", "--timeout=60s"]).ok();
    assert!(lab.kubectl(&["logs", "deployment/web"]).ok().stdout.contains("serving"));
    let exec = lab.kubectl(&["exec", "client", "--", "sh", "-c", "echo hello; exit 3"]);
    assert_eq!((exec.stdout.trim(), exec.code), ("hello", 3));
}

fn services(lab: &Lab) {
    let inside = eventually("the service's address answers in a pod", POD, || {
        let ran = lab.kubectl(&["exec", "client", "--", "wget", "-qO-", "-T", "2", "http://web"]);
        if ran.code == 0 { Ok(ran.stdout) } else { Err(ran.stderr) }
    });
    assert!(inside.starts_with("web-"), "{inside}");
    let outside = eventually("the node port answers the host", POD, || http("192.168.49.2:30080"));
    assert!(outside.contains("web-"), "{outside}");
}

fn http(address: &str) -> Result<String, String> {
    let answer = http_get(address)?;
    if answer.contains("200 OK") { Ok(answer) } else { Err(answer) }
}

fn port_forward(lab: &Lab) {
    let mut forward = lab.spawn(&["kubectl", "--", "port-forward", "service/web", "18080:80"]);
    let answer = eventually("port-forward", POD, || http("127.0.0.1:18080"));
    forward.kill().expect("end port-forward");
    forward.wait().expect("wait for port-forward");
    assert!(answer.contains("web-"), "{answer}");
}

fn dns(lab: &Lab) {
    for name in
        ["kubernetes.default.svc.cluster.local", "web.default.svc.cluster.local", "host.minikube.internal"]
    {
        lab.kubectl(&["exec", "client", "--", "nslookup", name]).ok();
    }
    let address =
        lab.kubectl(&["exec", "client", "--", "nslookup", "kubernetes.default.svc.cluster.local"]).ok();
    assert!(address.stdout.contains("10.96.0.1"), "{}", address.stdout);
}

fn volume(lab: &Lab, text: &str) {
    let image = lab.busybox();
    lab.apply(&format!(
        r#"
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{ name: data }}
spec:
  accessModes: [ReadWriteOnce]
  resources: {{ requests: {{ storage: 10Mi }} }}
---
apiVersion: v1
kind: Pod
metadata: {{ name: keeper }}
spec:
  terminationGracePeriodSeconds: 0
  containers:
    - name: keeper
      image: {image}
      command: [sh, -c, 'trap exit TERM; sleep 100000 & wait']
      volumeMounts: [{{ name: data, mountPath: /data }}]
  volumes: [{{ name: data, persistentVolumeClaim: {{ claimName: data }} }}]
"#
    ));
    lab.kubectl(&["wait", "--for=condition=Ready", "pod/keeper", "--timeout=90s"]).ok();
    assert_eq!(lab.kubectl(&["get", "pvc", "data", "-o", "jsonpath={.status.phase}"]).ok().stdout, "Bound");
    lab.kubectl(&["exec", "keeper", "--", "sh", "-c", &format!("echo '{text}' > /data/file")]).ok();
}

fn volume_has(lab: &Lab, text: &str) {
    let read = eventually("the volume's data", POD, || {
        let ran = lab.kubectl(&["exec", "keeper", "--", "cat", "/data/file"]);
        if ran.code == 0 { Ok(ran.stdout) } else { Err(ran.stderr) }
    });
    assert_eq!(read.trim(), text);
}

fn stop_and_start(lab: &Lab) {
    let uid = lab.kubectl(&["get", "node", "minikube", "-o", "jsonpath={.metadata.uid}"]).ok().stdout;
    let stopped = lab.manykube(&["stop"]).ok();
    println!("stop: {:.1} s", stopped.elapsed.as_secs_f32());
    assert!(stopped.stdout.contains("1 node stopped."), "{}", stopped.stdout);
    lab.manykube(&["status"]).exit(7);
    assert_eq!(lab.kubectl(&["config", "get-contexts", "minikube"]).code, 1, "stop keeps no context");
    let again = lab.manykube(&["start"]).ok();
    println!("start after stop: {:.1} s", again.elapsed.as_secs_f32());
    assert!(again.stdout.contains("Done!"), "{}", again.stdout);
    assert_eq!(lab.kubectl(&["get", "node", "minikube", "-o", "jsonpath={.metadata.uid}"]).ok().stdout, uid);
    assert_eq!(lab.manykube(&["ip"]).ok().text(), "192.168.49.2");
}

fn delete_leaves_nothing(lab: &Lab, before: &Footprint) {
    let deleted = lab.manykube(&["delete"]).ok();
    println!("delete: {:.1} s", deleted.elapsed.as_secs_f32());
    before.assert_nothing_left();
    for dir in ["profiles", "machines", "networks"] {
        let entries: Vec<_> =
            std::fs::read_dir(lab.home().join(dir)).into_iter().flatten().flatten().collect();
        assert!(entries.is_empty(), "{dir} still has {entries:?}");
    }
    lab.manykube(&["status"]).exit(85);
    lab.manykube(&["delete"]).ok();
    lab.manykube(&["delete", "--all", "--purge"]).ok();
    assert!(!lab.home().exists(), "purge left {}", lab.home().display());
}
