//! A cluster without a pod network, and one whose pod network is the user's: seeds/003 asks for both.

use std::time::Duration;

use system_tests::{Lab, eventually};

const SOON: Duration = Duration::from_secs(60);

/// The least that is a pod network of one node: a DaemonSet that writes a CNI configuration, with
/// programs that lie in every node.
fn manifest(image: &str) -> String {
    format!(
        r#"
apiVersion: v1
kind: Namespace
metadata: {{ name: pod-network }}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {{ name: pod-network, namespace: pod-network }}
spec:
  selector: {{ matchLabels: {{ app: pod-network }} }}
  template:
    metadata: {{ labels: {{ app: pod-network }} }}
    spec:
      hostNetwork: true
      terminationGracePeriodSeconds: 1
      tolerations: [{{ operator: Exists }}]
      containers:
        - name: write
          image: {image}
          command: [sh, -c]
          args:
            - |
              cat > /net.d/10-mine.conflist <<EOF
              {{ "cniVersion": "1.0.0", "name": "mine", "plugins": [{{ "type": "ptp", "ipam": {{
                "type": "host-local", "routes": [{{ "dst": "0.0.0.0/0" }}], "ranges": [[{{ "subnet": "10.244.7.0/24" }}]] }} }}] }}
              EOF
              trap exit TERM; sleep 1000000 & wait
          volumeMounts: [{{ name: net, mountPath: /net.d }}]
      volumes:
        - {{ name: net, hostPath: {{ path: /etc/cni/net.d, type: DirectoryOrCreate }} }}
"#
    )
}

fn ready(lab: &Lab) -> String {
    let path = "{.items[*].status.conditions[?(@.type=='Ready')].status}";
    lab.kubectl(&["get", "nodes", "-o", &format!("jsonpath={path}")]).ok().stdout
}

/// The parts share a cluster where they can, so they are one test.
#[test]
fn the_pod_network_is_the_users_choice() {
    let lab = Lab::new();

    // What is wrong is said in one line, and nothing is made.
    let file = lab.path("net.yaml");
    let flag = format!("--cni={}", file.display());
    assert_eq!(lab.manykube(&["start", &flag]).code, 35);
    std::fs::write(&file, "kind: Nonsense\n").expect("write a file");
    assert_eq!(lab.manykube(&["start", &flag]).code, 14);
    assert_eq!(lab.manykube(&["start", "--cni=calico"]).code, 16);
    assert_eq!(lab.manykube(&["start", "--vip=kube-vip"]).code, 14);
    // The lab has no way out.
    let image = "--vip-image=registry.invalid/kube-vip:v1";
    assert_eq!(lab.manykube(&["start", "--vip=kube-vip", image]).code, 40);
    assert!(!lab.home().join("profiles/minikube").exists());

    let out = lab.manykube(&["start", "--cni=none"]).ok().stdout;
    assert!(out.contains("No pod network was installed"), "{out}");
    assert_eq!(ready(&lab), "False");
    let status =
        lab.manykube(&["status", "-f", "{{.IP}} {{.Primary}} {{.VirtualIP}} {{.VirtualIPHolder}}"]).ok();
    assert_eq!(status.stdout, "192.168.49.2 true 192.168.49.254 minikube");
    lab.nothing_to_do();
    let busybox = lab.busybox();
    lab.manykube(&["delete"]).ok();

    std::fs::write(&file, manifest(&busybox)).expect("write a manifest");
    lab.manykube(&["start", &flag]).ok();
    assert_eq!(ready(&lab), "True");
    let pods = lab
        .kubectl(&["get", "pods", "-n", "kube-system", "-l", "k8s-app=kube-dns", "-o", "wide"])
        .ok()
        .stdout;
    assert!(pods.contains(" 10.244.7."), "{pods}");
    // The file is not needed any more.
    std::fs::remove_file(&file).expect("remove the manifest");
    lab.manykube(&["stop"]).ok();
    lab.manykube(&["start"]).ok();
    eventually("Ready again", SOON, || if ready(&lab) == "True" { Ok(()) } else { Err(ready(&lab)) });
    lab.nothing_to_do();
}
