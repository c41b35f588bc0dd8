use clap::Parser as _;
use model::node_config::{Binary, Component};
use proptest::prelude::*;

use super::*;
use crate::commands::start::desired::tests::sample;

const HOST: HostSize = HostSize { cpus: 8, memory_mib: 16000 };

#[derive(clap::Parser)]
struct Line {
    #[command(flatten)]
    flags: NodeFlags,
}

fn edit(line: &str) -> Result<Edit, Fault> {
    let words = std::iter::once("x").chain(line.split_whitespace());
    Line::try_parse_from(words).unwrap_or_else(|e| panic!("{line}: {e}")).flags.edit(HOST)
}

/// A cluster of a control plane and a worker that has the flags.
fn with(line: &str) -> (Cluster, Node) {
    let mut cluster = sample("demo");
    let worker = cluster.next_node(None, false).unwrap();
    let worker = edit(line).unwrap().apply(&cluster, &worker, None, HOST).unwrap();
    cluster.nodes.push(worker.clone());
    (cluster, worker)
}

fn changed(before: &str, line: &str) -> Result<NodeConfig, Fault> {
    let (cluster, worker) = with(before);
    Ok(edit(line)?.apply(&cluster, &worker, None, HOST)?.config)
}

#[test]
fn all_flags_at_once() {
    let got = edit(
        "--cpus=max -m 4g --disk-size=30g --kubernetes-version=1.36 -c containerd --extra-config=kubelet.a=b,c \
         --extra-opts apiserver.v=4 --feature-gates=A=true,B=false --labels a=b,c= --node-labels=d=e --taints a=b:NoSchedule,c:NoExecute \
         --mount ./src:/src:ro --mount /x:/y --ports=80:80,53:53/udp --base-image=mine --kubelet-binary=k",
    )
    .unwrap();
    let set = &got.set;
    assert_eq!((set.cpus, set.memory_mib, set.disk_mib), (Some(8), Some(4096), Some(30720)));
    assert_eq!(
        (got.version.as_deref(), set.container_runtime.as_deref()),
        (Some("1.36"), Some("containerd"))
    );
    assert_eq!(set.extra_config[&Component::Kubelet]["a"], "b,c", "no comma splits a flag's value");
    assert_eq!(set.extra_config[&Component::Apiserver]["v"], "4");
    assert_eq!(set.feature_gates.values().copied().collect::<Vec<_>>(), [true, false]);
    assert_eq!(set.labels.len(), 3);
    assert_eq!(set.taints.len(), 2);
    let here = std::env::current_dir().unwrap();
    assert_eq!(set.mounts[0].to_string(), format!("{}/src:/src:ro", here.display()));
    assert_eq!((set.mounts.len(), set.ports.len(), set.base_image.as_deref()), (2, 2, Some("mine")));
    assert_eq!(set.binaries[&Binary::Kubelet], format!("{}/k", here.display()));
    assert!(edit("").unwrap().is_empty());
    for empty in
        ["--labels=", "--base-image=", "--docker-env=", "--iso-url=", "-c auto", "--kubernetes-version="]
    {
        assert!(edit(empty).unwrap().is_empty(), "{empty}");
    }
}

#[test]
fn refusals_have_minikubes_codes() {
    for (line, code, text) in [
        ("--cpus=few", 14, "--cpus"),
        ("--memory=lots", 14, "--memory"),
        ("--disk-size=x", 14, "--disk-size"),
        ("--extra-config=kubelet", 14, "--extra-config: \"kubelet\" is not COMPONENT.FLAG=VALUE"),
        ("--extra-opts=docker.x=y", 14, "is none of kubeadm, kubelet"),
        ("--feature-gates=A", 14, "--feature-gates: \"A\" is not NAME=true"),
        ("--feature-gates=A=maybe", 14, "is not NAME=true"),
        ("--labels=a", 14, "--labels: \"a\" is not KEY=VALUE"),
        ("--labels=a=b-", 14, "is not a label's value"),
        ("--taints=a", 14, "--taints: \"a\" is not a taint"),
        ("--taints=a:Never-", 14, "is not the effect of a taint"),
        ("--mount=/a", 14, "--mount: \"/a\" is not a mount"),
        ("--mount=/a:/proc", 14, "which the node needs itself"),
        ("--ports=80", 14, "--ports: \"80\" is not a port"),
        ("-c docker", 16, "--container-runtime=docker is not supported yet"),
        ("-c cri-o", 16, "not supported yet"),
        ("-c frob", 14, "is not a container runtime"),
        ("--docker-env=A=b", 14, "--docker-env is for the docker runtime"),
        ("--docker-opt=x", 14, "--docker-opt is for the docker runtime"),
        ("--iso-url=http://x", 14, "--iso-url is for virtual machines"),
    ] {
        let fault = edit(line).unwrap_err();
        assert_eq!(fault.reason.exit_code(), code, "{line}: {fault}");
        assert!(fault.message.contains(text) && !fault.message.contains('\n'), "{line}: {fault}");
    }
}

#[test]
fn what_the_role_and_the_host_allow() {
    let (cluster, worker) = with("");
    let plane = cluster.nodes[0].clone();
    for (line, node, code) in [
        ("--cpus=1 --memory=512", &worker, 0),
        ("--cpus=1", &plane, 29),
        ("--memory=512", &plane, 23),
        ("--cpus=0", &worker, 29),
        ("--cpus=9", &worker, 29),
        ("--memory=100", &worker, 23),
        ("--memory=17000", &worker, 10),
        ("--disk-size=1g", &worker, 14),
        ("--extra-config=apiserver.v=4", &plane, 0),
        ("--extra-config=apiserver.v=4", &worker, 14),
        ("--kube-apiserver-binary=/x", &worker, 14),
        ("--kube-proxy-binary=/x", &worker, 0),
    ] {
        let got = edit(line).unwrap().apply(&cluster, node, None, HOST);
        assert_eq!(got.map_or_else(|f| f.reason.exit_code(), |_| 0), code, "{line} {}", node.control_plane);
    }
    let version = edit("--kubernetes-version=1.36").unwrap();
    let node = version.apply(&cluster, &worker, Some("v1.36.4"), HOST).unwrap();
    assert_eq!(node.kubernetes_version, "v1.36.4");
}

#[test]
fn what_ends_in_a_dash_is_removed() {
    let all = "--labels=a=b,c=d --taints=a=b:NoSchedule,a:NoExecute,c:NoExecute --feature-gates=A=true \
               --extra-config=kubelet.v=4 --mount=/x:/y --ports=80:80,80:80/udp --kubelet-binary=/k";
    let got = changed(all, "--labels=a- --taints=a- --feature-gates=A- --extra-config=kubelet.v- --mount=/y- --ports=80- --kubelet-binary=").unwrap();
    assert_eq!(got.labels.keys().collect::<Vec<_>>(), ["c"]);
    assert_eq!(got.taints.iter().map(ToString::to_string).collect::<Vec<_>>(), ["c:NoExecute"]);
    assert_eq!(got.ports.iter().map(ToString::to_string).collect::<Vec<_>>(), ["80:80/udp"]);
    assert!(got.feature_gates.is_empty() && got.extra_config.is_empty());
    assert!(got.mounts.is_empty() && got.binaries.is_empty());
    assert!(changed("", "--kubeadm-binary=").unwrap().is_empty());
    let one = changed(all, "--taints=a:NoExecute-").unwrap();
    assert_eq!(one.taints.len(), 2);
    assert_eq!(changed(all, "--taints=a=b:NoSchedule-").unwrap().taints.len(), 2);
    for line in ["--labels=x-", "--taints=a=x:NoSchedule-", "--ports=81-", "--mount=/z-"] {
        let fault = changed(all, line).unwrap_err();
        assert!(fault.message.starts_with("demo-m02 has no "), "{line}: {fault}");
    }
}

#[test]
fn what_is_inherited_cannot_be_removed_from_one_node() {
    let (mut cluster, worker) = with("");
    cluster.node_defaults = edit("--labels=a=b").unwrap().set;
    let fault = edit("--labels=a-").unwrap().apply(&cluster, &worker, None, HOST).unwrap_err();
    assert!(fault.message.starts_with("demo-m02 has the label a from its cluster"), "{fault}");
}

#[test]
fn minikubes_mount_keeps_its_meaning() {
    for (line, want) in [
        ("--mount", 0),
        ("--mount=true --mount-string=/a:/b", 1),
        ("--mount --mount-string=/a:/b", 1),
        ("--mount-string=/a:/b", 1),
        ("--mount=false --mount-string=/a:/b", 0),
        ("--mount /c:/d --mount --mount-string /a:/b", 2),
        ("--mount-string=", 0),
    ] {
        assert_eq!(edit(line).unwrap().set.mounts.len(), want, "{line}");
    }
    let nothing = |line: &str| {
        let words = std::iter::once("x").chain(line.split_whitespace());
        Line::try_parse_from(words).unwrap().flags.config.mounts_nothing()
    };
    assert!(nothing("--mount") && !nothing("--mount --mount-string=/a:/b") && !nothing("--mount /a:/b"));
}

#[test]
fn a_new_cluster_takes_all_but_removals() {
    let flags = |line: &str| {
        let words = std::iter::once("x").chain(line.split_whitespace());
        Line::try_parse_from(words).unwrap().flags.config.defaults(None)
    };
    assert_eq!(flags("--labels=a=b --taints=x:NoExecute").unwrap().labels.len(), 1);
    assert!(flags("--labels=a-").unwrap_err().message.starts_with("--labels=a- removes"));
    assert!(flags("--kubelet-binary=").unwrap().is_empty());
}

proptest! {
    #[test]
    fn any_word_is_read_or_refused_in_one_line(flag in 0usize..6, word in "[a-z0-9=:/.,-]{0,14}") {
        let flag = ["labels", "taints", "mount", "ports", "extra-config", "feature-gates"][flag];
        if let Err(fault) = edit(&format!("--{flag}={word}")) {
            prop_assert!(fault.reason == Reason::Usage && !fault.message.contains('\n'));
        }
    }

    /// Adding is idempotent, and removing undoes it.
    #[test]
    fn what_was_set_can_be_removed(keys in proptest::collection::btree_set("[a-z]{1,3}", 1..4)) {
        let list = |end: &str| keys.iter().map(|k| format!("{k}{end}")).collect::<Vec<_>>().join(",");
        let line = format!("--labels={} --taints={}", list("=v"), list(":NoExecute"));
        let once = changed("", &line).unwrap();
        prop_assert_eq!(&changed(&line, &line).unwrap(), &once);
        let gone = changed(&line, &format!("--labels={} --taints={}", list("-"), list("-"))).unwrap();
        prop_assert!(gone.is_empty());
    }
}
