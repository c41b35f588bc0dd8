//! Every node its own configuration: one file makes four different nodes, each property is read back from
//! the API or from the node, pods go where the nodes' properties let them (seeds/003), and the edited file
//! changes what was edited and nothing else. Then the same by commands.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use system_tests::{Footprint, Lab, eventually};

const SOON: Duration = Duration::from_secs(60);

/// One line for the user, and nothing made of it.
const BAD: [(&str, i32, &str); 6] = [
    ("memroy: 3g\n", 14, "c.yaml:3:1: unknown key \"memroy\""),
    ("nodes:\n- role: control-plane\n- {name: a}\n- {name: a}\n", 14, "c.yaml:6:"),
    (
        "kubernetesVersion: '1.36'\nnodes:\n- role: control-plane\n- kubernetesVersion: '1.37'\n",
        14,
        "may not be newer",
    ),
    ("nodes:\n- role: control-plane\n- mounts: ['./nowhere:/data']\n", 35, "nowhere"),
    ("nodes:\n- role: control-plane\n- containerRuntime: docker\n", 16, "c.yaml:5:21: not supported yet"),
    ("manifests: [nothing.yaml]\n", 35, "c.yaml:3:"),
];

fn file(nodes: &str) -> String {
    format!(
        "apiVersion: manykube.dev/v1\nkind: Cluster\nname: mixed\nmemory: 2200\nlabels: {{team: blue}}\nmanifests: [own.yaml]\nnodes:\n- role: control-plane\n{nodes}"
    )
}

const FIRST: &str = "
- name: big
  memory: 3g
  labels: {tier: data}
- name: small
  cpus: 1
  memory: 1g
  taints: ['dedicated=small:NoSchedule']
  extraConfig:
    kubelet: {max-pods: 17}
- name: old
  kubernetesVersion: '1.36'
  memory: 1100
  mounts: ['./data:/data:ro']
  files: [{path: /etc/mine, content: \"hi\\n\", mode: '0640'}]
";

/// `small` is larger, `old` is gone, `new` is there; nothing else is touched.
const EDITED: &str = "
- name: big
  memory: 3g
  labels: {tier: data}
- name: small
  cpus: 2
  memory: 1500
  taints: ['dedicated=small:NoSchedule']
  extraConfig:
    kubelet: {max-pods: 17}
- name: new
  memory: 1g
";

fn write(lab: &Lab, text: &str) -> String {
    let path = lab.path("c.yaml");
    std::fs::write(&path, text).expect("write the file");
    path.to_string_lossy().into_owned()
}

fn nodes(lab: &Lab) -> BTreeMap<String, Value> {
    let list = kubectl(lab, &["get", "nodes", "-o", "json"]).ok().json();
    let items = list["items"].as_array().expect("a list").clone();
    items.into_iter().map(|n| (n["metadata"]["name"].as_str().expect("a name").to_owned(), n)).collect()
}

fn kubectl(lab: &Lab, args: &[&str]) -> system_tests::Ran {
    lab.manykube(&[&["-p", "mixed", "kubectl", "--"], args].concat())
}

fn in_node(lab: &Lab, node: &str, command: &[&str]) -> String {
    lab.manykube(&[&["-p", "mixed", "ssh", "-n", node, "--"], command].concat()).ok().stdout
}

fn boot_ids(nodes: &BTreeMap<String, Value>) -> BTreeMap<String, String> {
    let id = |n: &Value| n["status"]["nodeInfo"]["bootID"].as_str().expect("a boot id").to_owned();
    nodes.iter().map(|(name, n)| (name.clone(), id(n))).collect()
}

fn pod(name: &str, image: &str, spec: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: Pod\nmetadata: {{ name: {name}, labels: {{ app: {name} }} }}\nspec:\n  terminationGracePeriodSeconds: 0\n  containers:\n  - {{ name: c, image: {image}, command: [sleep, '100000']{} }}\n{}",
        spec.strip_prefix("resources:").map_or(String::new(), |r| format!(", resources: {r}")),
        if spec.starts_with("resources:") { String::new() } else { format!("  {spec}\n") },
    )
}

fn where_is(lab: &Lab, pod: &str) -> String {
    eventually(pod, SOON, || {
        let phase =
            kubectl(lab, &["get", "pod", pod, "-o", "jsonpath={.status.phase} {.spec.nodeName}"]).ok().stdout;
        phase.strip_prefix("Running ").map(str::to_owned).ok_or(phase)
    })
}

#[test]
fn every_node_its_own_configuration() {
    let lab = Lab::new();
    let before = Footprint::take(&lab);
    std::fs::create_dir(lab.path("data")).expect("a directory");
    std::fs::write(lab.path("data/x"), "from the host\n").expect("a file");
    let own = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: own, namespace: default}\ndata: {a: b}\n";
    std::fs::write(lab.path("own.yaml"), own).expect("a manifest");

    for (body, code, part) in BAD {
        let path = write(&lab, &format!("apiVersion: manykube.dev/v1\nkind: Cluster\n{body}"));
        let ran = lab.manykube(&["start", "-f", &path]).exit(code);
        assert!(ran.stderr.contains(part), "{body}: {}", ran.stderr);
    }
    assert!(!lab.home().join("profiles/minikube").exists(), "nothing was made");

    let path = write(&lab, &file(FIRST));
    lab.manykube(&["start", "-f", &path]).ok();
    properties(&lab);
    scheduling(&lab);
    the_file_again(&lab, &path);
    by_commands(&lab);
    lab.manykube(&["-p", "mixed", "delete"]).ok();
    before.assert_nothing_left();
}

fn properties(lab: &Lab) {
    let nodes = nodes(lab);
    assert_eq!(nodes.keys().collect::<Vec<_>>(), ["mixed", "mixed-big", "mixed-old", "mixed-small"]);
    for (name, cpu, memory, pods, version) in [
        ("mixed", "2", "2200Mi", "110", "v1.37."),
        ("mixed-big", "2", "3Gi", "110", "v1.37."),
        ("mixed-small", "1", "1Gi", "17", "v1.37."),
        ("mixed-old", "2", "1100Mi", "110", "v1.36."),
    ] {
        let node = &nodes[name];
        for of in ["capacity", "allocatable"] {
            let size = &node["status"][of];
            assert_eq!(
                (&size["cpu"], &size["memory"], &size["pods"]),
                (&cpu.into(), &memory.into(), &pods.into()),
                "{name}"
            );
        }
        let kubelet = node["status"]["nodeInfo"]["kubeletVersion"].as_str().expect("a version");
        assert!(kubelet.starts_with(version), "{name}: {kubelet}");
        assert_eq!(node["metadata"]["labels"]["team"], "blue");
    }
    for (node, version) in [("big", "v1.37."), ("old", "v1.36.")] {
        eventually("kube-proxy is of the node's version", SOON, || {
            let said = in_node(lab, node, &["/proc/$(busybox pidof kube-proxy)/exe --version || true"]);
            if said.contains(version) { Ok(()) } else { Err(format!("{node}: {said}")) }
        });
    }
    assert_eq!(nodes["mixed-big"]["metadata"]["labels"]["tier"], "data");
    assert_eq!(
        nodes["mixed-small"]["spec"]["taints"],
        serde_json::json!([{ "key": "dedicated", "value": "small", "effect": "NoSchedule" }])
    );

    assert_eq!(in_node(lab, "small", &["nproc"]).trim(), "1");
    assert!(in_node(lab, "small", &["free", "-m"]).contains(" 1024 "), "free knows the size");
    let files = "cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max 2>/dev/null; true";
    let limits = in_node(lab, "small", &[files]);
    assert_eq!(limits.trim(), (1_u64 << 30).to_string(), "its group enforces it");
    assert_eq!(in_node(lab, "old", &["cat", "/data/x"]), "from the host\n");
    assert_ne!(
        lab.manykube(&["-p", "mixed", "ssh", "-n", "old", "--", "touch", "/data/y"]).code,
        0,
        "it is read-only"
    );
    assert_eq!(in_node(lab, "old", &["stat", "-c", "%a", "/etc/mine"]).trim(), "640");
    kubectl(lab, &["get", "configmap", "own"]).ok();
}

/// By resources, selectors, affinity and taints.
fn scheduling(lab: &Lab) {
    let images = in_node(lab, "mixed", &["ctr", "-n", "k8s.io", "images", "ls", "-q"]);
    let image = images.lines().find(|i| i.contains("/busybox:")).expect("a busybox image").trim().to_owned();
    let affinity = "affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions: [{ key: tier, operator: Exists }] }] } } }";
    let tolerates = "tolerations: [{ key: dedicated, operator: Exists }]\n  nodeSelector: { kubernetes.io/hostname: mixed-small }";
    let manifest = [
        pod("large", &image, "resources: { requests: { memory: 2500Mi } }"),
        pod("huge", &image, "resources: { requests: { memory: 4Gi } }"),
        pod("many-cpus", &image, "resources: { requests: { cpu: 3 } }"),
        pod("selects", &image, "nodeSelector: { tier: data }"),
        pod("affine", &image, affinity),
        pod("tolerant", &image, tolerates),
        pod("intolerant", &image, "nodeSelector: { kubernetes.io/hostname: mixed-small }"),
    ];
    let path = lab.path("pods.yaml");
    std::fs::write(&path, manifest.concat()).expect("write pods");
    kubectl(lab, &["apply", "-f", &path.to_string_lossy()]).ok();
    for (pod, node) in [
        ("large", "mixed-big"),
        ("selects", "mixed-big"),
        ("affine", "mixed-big"),
        ("tolerant", "mixed-small"),
    ] {
        assert_eq!(where_is(lab, pod), node, "{pod}");
    }
    for (pod, why) in [
        ("huge", "Insufficient memory"),
        ("many-cpus", "Insufficient cpu"),
        ("intolerant", "untolerated taint"),
    ] {
        let says = "jsonpath={.status.phase}: {.status.conditions[?(@.type=='PodScheduled')].message}";
        let said = eventually(pod, SOON, || {
            let said = kubectl(lab, &["get", "pod", pod, "-o", says]).ok().stdout;
            if said.contains(why) { Ok(said) } else { Err(said) }
        });
        assert!(said.starts_with("Pending"), "{said}");
    }
}

fn the_file_again(lab: &Lab, path: &str) {
    lab.nothing_to_do_for(&["start", "-f", path]);
    // Export says the same.
    let exported = lab.manykube(&["-p", "mixed", "config", "export"]).ok().stdout;
    let copy = lab.path("exported.yaml");
    std::fs::write(&copy, exported).expect("write the export");
    lab.nothing_to_do_for(&["start", "-f", &copy.to_string_lossy()]);

    let earlier = boot_ids(&nodes(lab));
    let path = write(lab, &file(EDITED));
    let refused = lab.manykube(&["start", "-f", &path]).exit(14);
    assert!(refused.stderr.contains("mixed-old") && refused.stderr.contains("--yes"), "{}", refused.stderr);
    assert_eq!(boot_ids(&nodes(lab)), earlier, "nothing was changed");
    let out = lab.manykube(&["start", "-f", &path, "--yes"]).ok().stdout;
    for line in [
        "+ mixed-new (worker)",
        "- mixed-old (worker)",
        "~ mixed-small: cpus: 1 -> 2 (live)",
        "~ mixed-small: memory: 1024Mi -> 1500Mi (live)",
    ] {
        assert!(out.contains(line), "{line}: {out}");
    }
    let now = nodes(lab);
    assert_eq!(now.keys().collect::<Vec<_>>(), ["mixed", "mixed-big", "mixed-new", "mixed-small"]);
    let ids = boot_ids(&now);
    for name in ["mixed", "mixed-big", "mixed-small"] {
        assert_eq!(ids[name], earlier[name], "{name} was not restarted");
    }
    let small = &now["mixed-small"]["status"]["capacity"];
    assert_eq!((&small["cpu"], &small["memory"]), (&"2".into(), &"1500Mi".into()));
    assert_eq!(in_node(lab, "small", &["nproc"]).trim(), "2");
    assert_eq!(where_is(lab, "tolerant"), "mixed-small", "pods run on");
}

fn by_commands(lab: &Lab) {
    let mk = |args: &[&str]| lab.manykube(&[&["-p", "mixed"], args].concat());
    mk(&["worker", "create", "w1", "--memory=1g", "--labels=a=b,c=d", "--extra-config=kubelet.max-pods=9"])
        .ok();
    assert!(!nodes(lab).contains_key("mixed-w1"), "made, not started");
    assert!(mk(&["worker", "list"]).ok().stdout.contains("mixed-w1"));
    mk(&["worker", "start", "w1"]).ok();
    let node = nodes(lab)["mixed-w1"].clone();
    assert_eq!(
        (&node["status"]["capacity"]["pods"], &node["metadata"]["labels"]["c"]),
        (&"9".into(), &"d".into())
    );

    // While it runs, then by a restart; it says which.
    let out = mk(&["node", "set", "w1", "--cpus=1", "--labels=c-,e=f", "--taints=k=v:NoExecute"]).ok().stdout;
    assert!(out.contains("cpus: 2 -> 1 (live)") && !out.contains("(restart)"), "{out}");
    let live = nodes(lab)["mixed-w1"].clone();
    assert_eq!(live["status"]["nodeInfo"]["bootID"], node["status"]["nodeInfo"]["bootID"]);
    assert_eq!(live["status"]["capacity"]["cpu"], "1");
    let labels = &live["metadata"]["labels"];
    assert_eq!((&labels["a"], &labels["c"], &labels["e"]), (&"b".into(), &Value::Null, &"f".into()));
    // The controllers put one of theirs beside it while the kubelet starts anew.
    let taints = live["spec"]["taints"].as_array().cloned().unwrap_or_default();
    assert!(taints.iter().any(|taint| taint["key"] == "k"), "{taints:?}");
    let mount = format!("--mount={}:/host", lab.path("data").display());
    let out = mk(&["node", "set", "w1", &mount, "--taints=k:NoExecute-"]).ok().stdout;
    assert!(out.contains("(restart)"), "{out}");
    assert_eq!(in_node(lab, "w1", &["cat", "/host/x"]), "from the host\n");
    let again = nodes(lab)["mixed-w1"].clone();
    assert_ne!(again["status"]["nodeInfo"]["bootID"], node["status"]["nodeInfo"]["bootID"]);
    assert_eq!(
        (&again["spec"]["taints"], &again["metadata"]["uid"]),
        (&Value::Null, &node["metadata"]["uid"])
    );

    // A control plane's own flags; what a kubelet does not know is told.
    mk(&["node", "set", "mixed", "--extra-config=scheduler.v=3"]).ok();
    let flags = "jsonpath={.spec.containers[0].command}";
    eventually("the scheduler has its flag", SOON, || {
        let pod = ["get", "pod", "-n", "kube-system", "kube-scheduler-mixed", "-o", flags];
        let said = kubectl(lab, &pod).stdout;
        if said.contains("--v=3") { Ok(()) } else { Err(said) }
    });
    let failed = mk(&["node", "set", "w1", "--extra-config=kubelet.no-such-flag=1"]).exit(80);
    assert!(failed.stderr.contains("unknown flag: --no-such-flag"), "{}", failed.stderr);
    mk(&["node", "set", "w1", "--extra-config=kubelet.no-such-flag-"]).ok();
    mk(&["node", "set", "w1", "--kubernetes-version=v1.20.0"]).exit(106);
    mk(&["worker", "delete", "w1"]).ok();
}
