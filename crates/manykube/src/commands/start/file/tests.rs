use clap::Parser as _;
use model::resources::HostSize;

use super::*;
use crate::args::{Cli, Commands};
use crate::commands::start::desired::{self, Facts};

const HOST: HostSize = HostSize { cpus: 8, memory_mib: 16000 };
const HEAD: &str = "apiVersion: manykube.dev/v1\nkind: Cluster\n";

fn args(line: &str) -> Args {
    let words = ["manykube", "start"].into_iter().chain(line.split_whitespace());
    match Cli::try_parse_from(words).unwrap().command {
        Some(Commands::Start(args)) => *args,
        _ => unreachable!(),
    }
}

fn input(body: &str) -> Input {
    let parsed = cluster_file::parse(&format!("{HEAD}{body}")).unwrap_or_else(|e| panic!("{}", e.show("f")));
    Input { path: "f".into(), text: String::new(), parsed }
}

fn fresh(line: &str, body: &str) -> Result<Cluster, Fault> {
    let input = input(body);
    let args = as_flags(&args(line), &input.parsed.file);
    let driver = model::DriverKind::Native;
    let facts = Facts {
        profile: "demo",
        driver,
        version: "v1.37.1".into(),
        host: HOST,
        taken: &[],
        cni: model::Cni::BuiltIn,
        vip_by: model::VipBy::Agent,
    };
    let mut base = desired::fresh(&args, &facts)?;
    base.nodes.clear();
    input.resolve(&base, HOST, false)
}

#[test]
fn the_file_makes_the_nodes() {
    let c = fresh(
        "",
        "memory: 2g\nnodes:\n- role: control-plane\n  count: 3\n- name: big\n  cpus: 4\n  memory: 4g\n\
         networking: {podSubnet: 10.200.0.0/16, nodeSubnet: 10.9.8.0/24}\napiServer: {port: 6443, extraSANs: [a.b, 1.2.3.4]}\n\
         wait: none\nkubeconfig: {namespace: dev, keepContext: true}\n",
    )
    .unwrap();
    let nodes: Vec<_> = c.nodes.iter().map(|n| (n.name.as_str(), n.ip.to_string())).collect();
    let want = [("", "10.9.8.2"), ("m02", "10.9.8.3"), ("m03", "10.9.8.4"), ("big", "10.9.8.5")];
    assert_eq!(nodes, want.map(|(n, ip)| (n, ip.to_owned())));
    assert_eq!((c.memory_mib, c.node_memory_mib(&c.nodes[3]), c.node_cpus(&c.nodes[3])), (2048, 4096, 4));
    assert_eq!((c.api_port, c.api_names.len(), c.api_ips.len()), (6443, 1, 1));
    assert_eq!(c.network.pod_cidr.to_string(), "10.200.0.0/16");
    assert!(c.wait.components.is_empty() && c.keep_context && c.namespace == "dev");
    assert_eq!(c.name, "demo");
}

#[test]
fn flags_are_the_last_word() {
    let c = fresh(
        "--memory=4g --apiserver-port=7443 --wait=all",
        "memory: 2g\napiServer: {port: 6443}\nwait: none\n",
    );
    let c = c.unwrap();
    assert_eq!((c.memory_mib, c.api_port, c.wait.components.len()), (4096, 7443, 7));
    assert!(check_flags(&args("--nodes=2")).is_err() && check_flags(&args("--memory=2g")).is_ok());
}

#[test]
fn what_nobody_does_yet_is_refused_with_its_place() {
    for (body, place) in [
        ("networking: {kubeProxyMode: ipvs}\n", "f:3:29: not supported yet: kubeProxyMode"),
        ("addons: {dashboard: true}\n", "f:3:1: not supported yet: addons"),
        ("containerRuntime: docker\n", "f:3:19: not supported yet: containerRuntime"),
    ] {
        let fault = fresh("", body).unwrap_err();
        assert_eq!(fault.reason, Reason::Unimplemented, "{body}");
        assert_eq!(fault.message.lines().next(), Some(place));
    }
    for body in [
        "",
        "containerRuntime: containerd\n",
        "cni: auto\n",
        "nodes:\n- role: control-plane\n- diskSize: 30g\n",
        "cni: none\n",
        "labels: {a: b}\ntaints: ['a:NoExecute']\nmounts: ['/a:/b']\n",
        "networking: {kubeProxyMode: iptables}\n",
        "addons: {default-storageclass: true}\n",
    ] {
        fresh("", body).unwrap();
    }
    assert_eq!(
        fresh("", "nodes:\n- role: control-plane\n- cpus: 99\n").unwrap_err().reason,
        Reason::InsufficientCores
    );
}

#[test]
fn an_exported_cluster_changes_nothing() {
    let old = fresh("", "nodes:\n- role: control-plane\n- name: w\n  memory: 1g\n").unwrap();
    let text = cluster_file::write(&cluster_file::export(&old)).unwrap();
    let input = input(text.strip_prefix(HEAD).unwrap());
    let base = over(&old, &as_flags(&args(""), &input.parsed.file), &old.kubernetes_version, HOST).unwrap();
    let new = input.resolve(&base, HOST, false).unwrap();
    assert_eq!(new, old);
    let changes = changes(&old, &new).unwrap();
    assert!(changes.lines.is_empty() && changes.removed.is_empty());
}

#[test]
fn an_edited_file_says_what_changes() {
    let old = fresh("", "nodes:\n- role: control-plane\n- name: a\n- name: b\n").unwrap();
    let edited = |body: &str| {
        let input = input(body);
        let base =
            over(&old, &as_flags(&args(""), &input.parsed.file), &old.kubernetes_version, HOST).unwrap();
        changes(&old, &input.resolve(&base, HOST, false)?)
    };
    let got = edited("nodes:\n- role: control-plane\n- name: b\n- name: c\n").unwrap();
    assert_eq!(got.lines, ["+ demo-c (worker)", "- demo-a (worker)"]);
    assert_eq!(got.removed.len(), 1);
    let bigger =
        edited("nodes:\n- role: control-plane\n- name: a\n  memory: 8g\n  mounts: ['/x:/y']\n- name: b\n")
            .unwrap();
    let memory = old.memory_mib;
    assert_eq!(
        bigger.lines,
        [
            format!("~ demo-a: memory: {memory}Mi -> 8192Mi (live)"),
            "~ demo-a: mounts: [] -> [\"/x:/y\"] (restart)".to_owned()
        ]
    );
    let port =
        edited("apiServer: {port: 6443}\nnodes:\n- role: control-plane\n- name: a\n- name: b\n").unwrap_err();
    assert!(
        port.message.starts_with("apiServer.port cannot be changed from 8443 to 6443: delete the cluster")
    );
    assert!(confirm(&["demo-a".into()], true).is_ok() && confirm(&[], false).is_ok());
}
