use model::cluster::ProxyMode;
use model::node_config::Component;

use crate::{Origin, Parsed, parse};

const HEAD: &str = "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\n";

fn read(body: &str) -> Parsed {
    parse(&format!("{HEAD}{body}")).unwrap_or_else(|e| panic!("{}", e.show("kind.yaml")))
}

fn wrong(body: &str) -> (usize, usize, String) {
    let problems = parse(&format!("{HEAD}{body}")).unwrap_err();
    let first = &problems.list()[0];
    (first.position().line, first.position().column, first.message.clone())
}

/// kind's own page on its configuration, in one file.
const FULL: &str = r#"name: app-1-cluster
featureGates:
  CSIMigration: true
runtimeConfig:
  "api/alpha": "false"
networking:
  ipFamily: dual
  apiServerAddress: "127.0.0.1"
  apiServerPort: 6443
  podSubnet: "10.100.0.0/16,fd00:10:244::/56"
  serviceSubnet: "10.200.0.0/16"
  disableDefaultCNI: true
  kubeProxyMode: "nftables"
nodes:
- role: control-plane
  image: kindest/node:v1.31.0@sha256:abc
  kubeadmConfigPatches:
  - |
    kind: InitConfiguration
    nodeRegistration:
      kubeletExtraArgs:
        node-labels: "my-label=true"
  extraPortMappings:
  - containerPort: 80
    hostPort: 8080
    listenAddress: "127.0.0.1"
    protocol: udp
  - containerPort: 81
- role: worker
  labels:
    tier: frontend
  extraMounts:
  - hostPath: ./my/files/
    containerPath: /files
    readOnly: true
    selinuxRelabel: true
    propagation: HostToContainer
- role: worker
containerdConfigPatches:
- |-
  [plugins."io.containerd.grpc.v1.cri"]
    a = 1
"#;

#[test]
fn all_that_kind_can_say() {
    let parsed = read(FULL);
    assert_eq!(parsed.origin, Origin::Kind);
    let file = &parsed.file;
    assert_eq!(file.name.as_deref(), Some("app-1-cluster"));
    let names: Vec<_> = file.nodes.iter().map(|n| n.name.as_deref().unwrap()).collect();
    assert_eq!(names, ["control-plane", "worker", "worker2"]);
    assert!(file.feature_gates["CSIMigration"]);
    assert_eq!(file.extra_config.0[&Component::Apiserver]["runtime-config"], "api/alpha=false");
    assert_eq!(file.api_server.port, Some(6443));
    assert_eq!(file.networking.pod_subnet.unwrap().to_string(), "10.100.0.0/16");
    assert_eq!(file.networking.kube_proxy_mode, Some(ProxyMode::Nftables));
    assert_eq!(file.cni.as_deref(), Some("none"));
    assert_eq!(file.nodes[0].ports[0].to_string(), "127.0.0.1:8080:80/udp");
    assert_eq!(
        file.nodes[0].patches.kubeadm[0]["nodeRegistration"]["kubeletExtraArgs"]["node-labels"],
        "my-label=true"
    );
    assert_eq!(file.nodes[1].mounts[0].to_string(), "./my/files/:/files:ro");
    assert_eq!(file.nodes[1].labels["tier"], "frontend");
    assert!(file.patches.containerd[0].contains("a = 1"));
    // What it will not get is named, where it stands.
    let text = format!("{HEAD}{FULL}");
    let noted: Vec<&str> =
        parsed.notes.iter().map(|n| text.lines().nth(n.position().line - 1).unwrap().trim()).collect();
    assert_eq!(
        noted,
        [
            "ipFamily: dual",
            "apiServerAddress: \"127.0.0.1\"",
            "podSubnet: \"10.100.0.0/16,fd00:10:244::/56\"",
            "- containerPort: 81",
            "selinuxRelabel: true",
            "propagation: HostToContainer",
        ]
    );
}

#[test]
fn the_smallest() {
    let parsed = read("");
    assert_eq!(parsed.file.name.as_deref(), Some("kind"));
    assert_eq!(parsed.file.nodes.len(), 1);
    assert!(parsed.notes.is_empty());
}

#[test]
fn errors_point_into_kinds_file() {
    for (body, line, column, part) in [
        ("nodes:\n- rol: worker\n", 4, 3, "did you mean \"role\"?"),
        ("nodes:\n- role: master\n", 4, 9, "control-plane, worker"),
        ("nodes:\n- role: worker\n", 3, 1, "no control plane"),
        ("networking:\n  podSubnet: banana\n", 4, 14, "no IPv4 range"),
        ("networking:\n  podSubnet: 10.96.0.0/16\n", 4, 14, "overlaps"),
        ("networking:\n  kubeProxyMode: magic\n", 4, 18, "none of iptables"),
        ("networking:\n  apiServerPort: 10250\n", 4, 18, "cannot have the port"),
        ("nodes:\n- extraMounts:\n  - hostPath: /a\n    containerPath: b\n", 5, 5, "absolute path"),
        (
            "nodes:\n- extraPortMappings:\n  - {containerPort: 80, hostPort: 80}\n- role: worker\n  extraPortMappings:\n  - {containerPort: 80, hostPort: 80}\n",
            8,
            5,
            "the same port",
        ),
        ("kubeadmConfigPatches:\n- 'kind: ['\n", 4, 3, "line 1 of the patch"),
        ("kubeadmConfigPatches:\n- 'a: 1'\n", 4, 3, "needs a kind"),
        ("featureGates: {a-b: true}\n", 3, 21, "feature gate"),
        ("name: start\n", 3, 7, "no name"),
    ] {
        let got = wrong(body);
        assert_eq!((got.0, got.1), (line, column), "{body}{got:?}");
        assert!(got.2.contains(part), "{body}{got:?}");
    }
}
