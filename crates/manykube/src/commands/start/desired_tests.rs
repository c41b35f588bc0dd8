use clap::Parser as _;

use super::*;
use crate::args::{Cli, Commands};

const HOST: HostSize = HostSize { cpus: 8, memory_mib: 16000 };

pub fn args(line: &str) -> Args {
    let words = ["manykube", "start"].into_iter().chain(line.split_whitespace());
    match Cli::try_parse_from(words).unwrap().command {
        Some(Commands::Start(args)) => *args,
        _ => unreachable!(),
    }
}

fn with(line: &str, taken: &[Ipv4Net]) -> Result<Cluster, Fault> {
    let facts = Facts {
        profile: "demo",
        driver: DriverKind::Native,
        version: "v1.37.1".into(),
        host: HOST,
        taken,
        cni: Cni::BuiltIn,
        vip_by: VipBy::Agent,
    };
    fresh(&args(line), &facts)
}

pub fn sample(name: &str) -> Cluster {
    let mut cluster = with("", &[]).unwrap();
    cluster.name = name.to_owned();
    cluster
}

#[test]
fn defaults_are_minikubes() {
    let c = with("", &[]).unwrap();
    assert_eq!((c.cpus, c.memory_mib, c.disk_mib, c.api_port), (2, 4000, 20000, 8443));
    assert_eq!(c.network.subnet.to_string(), "192.168.49.0/24");
    assert_eq!(c.nodes[0].ip.to_string(), "192.168.49.2");
    assert_eq!(c.wait.components, [WaitFor::Apiserver, WaitFor::SystemPods]);
    assert_eq!(c.namespace, "default");
}

#[test]
fn flags_are_taken() {
    let c = with(
        "--cpus=max -m 8g --apiserver-port=6443 --apiserver-names=a.example --apiserver-ips=10.1.1.1 \
         --namespace=dev --wait=all --subnet=10.9.8.0 --dns-domain=corp.test --cert-expiration=48h --keep-context",
        &[],
    )
    .unwrap();
    assert_eq!((c.cpus, c.memory_mib, c.api_port, c.cert_expiration_hours), (8, 8192, 6443, 48));
    assert_eq!(c.nodes[0].ip.to_string(), "10.9.8.2");
    assert_eq!((c.wait.components.len(), c.keep_context), (7, true));
    assert_eq!(c.network.dns_domain, "corp.test");
}

#[test]
fn the_first_node_has_the_address_that_was_asked_for() {
    let ips = |line: &str| -> Vec<String> {
        with(line, &[]).unwrap().nodes.iter().map(|n| n.ip.to_string()).collect()
    };
    assert_eq!(ips("--static-ip=10.9.8.200 --nodes=3"), ["10.9.8.200", "10.9.8.3", "10.9.8.4"]);
    assert_eq!(ips("--static-ip=10.9.8.4 --nodes=3 --subnet=10.9.8.0"), ["10.9.8.4", "10.9.8.3", "10.9.8.2"]);
    let old = with("--static-ip=10.9.8.4", &[]).unwrap();
    let warnings = |line: &str| existing(&old, &args(line), HOST).unwrap().1.len();
    assert_eq!((warnings("--static-ip=10.9.8.4"), warnings("--static-ip=10.9.8.5")), (0, 1));
}

#[test]
fn refusals() {
    let net = |s: &str| s.parse::<Ipv4Net>().unwrap();
    for (line, code) in [
        ("--memory=1g", 23),
        ("--memory=64g", 10),
        ("--cpus=9", 29),
        ("--cpus=1", 29),
        ("--cpus=many", 14),
        ("--memory=lots", 14),
        ("--disk-size=1g", 14),
        ("--nodes=300", 14),
        ("--ha --nodes=2", 14),
        ("--nodes=0", 14),
        ("--apiserver-port=10250", 14),
        ("--subnet=10.244.3.0/24", 14),
        ("--service-cluster-ip-range=10.244.0.0/20", 14),
        ("--subnet=192.168.77.0/24", 70),
        ("--static-ip=192.168.77.9", 70),
        ("--static-ip=192.168.60.9 --subnet=192.168.61.0", 14),
        ("--static-ip=192.168.60.254", 14),
        ("--namespace=A", 14),
        ("--wait=forever", 14),
        ("--dns-domain=-", 14),
    ] {
        let fault = with(line, &[net("192.168.76.0/23")]).unwrap_err();
        assert_eq!(fault.reason.exit_code(), code, "{line}: {fault}");
        assert!(!fault.message.contains('\n'));
    }
    assert!(with("--memory=1g --cpus=9 --force", &[]).is_ok());
    assert_eq!(with("", &[net("192.168.0.0/16")]).unwrap_err().reason, Reason::SubnetConflict);
    assert_eq!(with("", &[net("192.168.49.0/24")]).unwrap().network.subnet, net("192.168.58.0/24"));
}

#[test]
fn an_existing_cluster_keeps_its_shape() {
    let old = sample("demo");
    let (same, warnings) = existing(&old, &args(""), HOST).unwrap();
    assert_eq!((&same, warnings.len()), (&old, 0));
    let (same, warnings) = existing(
        &old,
        &args("--memory=4000 --cpus=2 --nodes=1 --subnet=192.168.49.0 --cni=bridge --vip=agent"),
        HOST,
    )
    .unwrap();
    assert_eq!((&same, warnings.len()), (&old, 0));
    let line = "--memory=8g --cpus=4 --nodes=3 --ha --subnet=10.0.0.0 --apiserver-port=6443 --disk-size=30g \
                --cni=none --vip=kube-vip";
    let (same, warnings) = existing(&old, &args(line), HOST).unwrap();
    assert_eq!((&same, warnings.len()), (&old, 9));
    let (new, warnings) = existing(&old, &args("--wait=all --namespace=dev --embed-certs"), HOST).unwrap();
    assert_eq!(warnings.len(), 0);
    assert!(new.embed_certs && new.namespace == "dev" && new.wait.components.len() == 7);
    assert!(existing(&old, &args("--memory=lots"), HOST).is_err());
    let too_small = existing(&old, &args("--memory=250mb"), HOST).unwrap_err();
    assert_eq!(too_small.reason, Reason::InsufficientReqMemory);
    assert_eq!(existing(&old, &args("--memory=250mb --force"), HOST).unwrap().1.len(), 1);
}
