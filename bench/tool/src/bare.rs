//! Machines as manykube's, of the same image and size, but with nothing of Kubernetes prepared: what
//! `kubeadm init` and `kubeadm join` find on a fresh host with a container runtime.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use bootstrap::paths;
use drivers::native::Native;
use drivers::{Driver, MachineSpec};
use futures::future::try_join_all;
use image::{NodeImage, Store};
use ipnet::Ipv4Net;
use model::cluster::{Network, Wait};
use model::node_spec::{Kubelet, NodeFile, NodeNetwork, NodeSpec, PEERS_PATH, Peers, SPEC_PATH};
use model::{Cluster, DriverKind, Home, Node, address, names};
use protocol::ExecEvent;
use protocol::messages::Start;

pub const PROFILE: &str = "bare";
/// The benchmark has a network namespace of its own: every subnet is free.
pub const SUBNET: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::new(192, 168, 49, 0), 24);
const PODS: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::new(10, 244, 0, 0), 16);
const SERVICES: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::new(10, 96, 0, 0), 12);
/// What a start of three control planes gives each.
const CPUS: u32 = 2;
const MEMORY_MIB: u32 = 3072;

/// kubeadm's own unit has systemd start the kubelet once its configuration is there. There is no
/// systemd in a node: this starts it within 50 ms, which is what kubeadm asks systemd for.
const KUBELET: &str = "\
    until [ -e /var/lib/kubelet/config.yaml ] && [ -e /var/lib/kubelet/kubeadm-flags.env ]; do sleep 0.05; done; \
    . /var/lib/kubelet/kubeadm-flags.env; \
    exec kubelet --bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf \
    --kubeconfig=/etc/kubernetes/kubelet.conf --config=/var/lib/kubelet/config.yaml $KUBELET_KUBEADM_ARGS";

pub async fn up(home: &Home, count: u32) -> Result<()> {
    let version = image::default_version();
    let image = Store::new(home.cache())
        .find(version)?
        .with_context(|| format!("no node image of Kubernetes {version} is in the store"))?;
    let cluster = cluster(count, version)?;
    let driver = Native::new(home.clone());
    driver.network_up(&cluster).await?;
    try_join_all(cluster.nodes.iter().map(|node| boot(&driver, &cluster, node, &image))).await?;
    Ok(())
}

async fn boot(driver: &Native, cluster: &Cluster, node: &Node, image: &NodeImage) -> Result<()> {
    let spec = MachineSpec {
        name: cluster.machine(node),
        cluster: cluster.clone(),
        ip: node.ip,
        image: image.clone(),
        cpus: CPUS,
        memory_mib: MEMORY_MIB,
        disk_mib: None,
        files: files(cluster, node, image)?,
        binds: Vec::new(),
        ports: Vec::new(),
        forwarded: Vec::new(),
        listen: Ipv4Addr::LOCALHOST,
    };
    driver.create(&spec).await?;
    driver.boot(&spec).await?;
    let agent = protocol::Node::open(&spec.name, driver.connect(&spec.name).await?).await?;
    loop {
        // The kubelet is started last.
        match agent.state().await {
            Ok(state) if state.problem.is_some() => {
                bail!("machine {}: {}", spec.name, state.problem.unwrap_or_default())
            }
            Ok(state) if state.service("kubelet").is_some_and(|s| s.running) => return Ok(()),
            _ => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

fn files(cluster: &Cluster, node: &Node, image: &NodeImage) -> Result<Vec<NodeFile>> {
    let pause = image.manifest.images.iter().find(|i| i.contains("/pause:")).context("no pause image")?;
    let spec = NodeSpec {
        profile: cluster.name.clone(),
        machine: cluster.machine(node),
        control_plane: true,
        network: NodeNetwork {
            address: Ipv4Net::new_assert(node.ip, SUBNET.prefix_len()),
            gateway: cluster.gateway(),
            vip: None,
            // The same CNI configuration and routes as in a cluster of ours.
            pods: Some(cluster.pod_cidr_of(node)),
            cluster_pods: PODS,
            services: SERVICES,
            api: None,
            dns: vec![],
            mtu: drivers::MTU,
        },
        hosts: vec![],
        prepare: vec![],
        kubelet: Kubelet {
            argv: ["/bin/sh", "-c", KUBELET].map(str::to_owned).into(),
            env_files: vec![],
            env: vec![],
        },
        early_api: None,
        cpus: Some(CPUS),
        memory_mib: Some(MEMORY_MIB),
    };
    let peers = Peers { nodes: cluster.nodes.iter().map(|n| n.ip).collect(), ..Peers::default() };
    Ok(vec![
        bootstrap::containerd::file(pause, &[])?,
        // The image's /etc/kubernetes/pki leads here.
        NodeFile::new(format!("{}/.keep", paths::CERTS), 0o600, ""),
        NodeFile::new(paths::RESOLV_CONF, 0o644, format!("nameserver {}\n", cluster.gateway())),
        NodeFile::new(SPEC_PATH, 0o600, serde_json::to_vec(&spec)?),
        NodeFile::new(PEERS_PATH, 0o600, serde_json::to_vec(&peers)?),
    ])
}

fn cluster(count: u32, version: &str) -> Result<Cluster> {
    let node = |number| {
        Ok(Node {
            name: names::node(number),
            ip: address::node_ip(SUBNET, number).context("too many machines")?,
            control_plane: true,
            worker: true,
            kubernetes_version: version.to_owned(),
            config: model::NodeConfig::default(),
        })
    };
    Ok(Cluster {
        name: PROFILE.to_owned(),
        driver: DriverKind::Native,
        kubernetes_version: version.to_owned(),
        cpus: CPUS,
        memory_mib: MEMORY_MIB,
        disk_mib: model::resources::DEFAULT_DISK_MIB,
        network: Network {
            subnet: SUBNET,
            pod_cidr: PODS,
            service_cidr: SERVICES,
            dns_domain: "cluster.local".to_owned(),
        },
        api_port: 6443,
        nodes: (1..=count).map(node).collect::<Result<_>>()?,
        api_names: vec![],
        api_ips: vec![],
        cert_expiration_hours: 24,
        addons: BTreeMap::new(),
        namespace: "default".to_owned(),
        keep_context: true,
        embed_certs: false,
        wait: Wait { components: vec![] },
        cni: model::Cni::BuiltIn,
        vip_by: model::VipBy::Agent,
        node_defaults: model::NodeConfig::default(),
        extras: model::cluster::Extras::default(),
    })
}

pub async fn down(home: &Home) -> Result<()> {
    let driver = Native::new(home.clone());
    let machines = driver.list().await?;
    try_join_all(machines.iter().map(|m| driver.remove(&m.name))).await?;
    driver.network_down(PROFILE, true).await
}

/// With our own output; ends as the command does.
pub async fn run(home: &Home, machine: &str, argv: &[&str]) -> Result<u8> {
    let argv = argv.iter().map(|&a| a.to_owned()).collect();
    let node = protocol::Node::open(machine, Native::new(home.clone()).connect(machine).await?).await?;
    let mut exec = node.exec(Start { argv, ..Start::default() }).await?;
    drop(exec.take_input());
    loop {
        match exec.next().await? {
            ExecEvent::Stdout(data) => std::io::stdout().write_all(&data)?,
            ExecEvent::Stderr(data) => std::io::stderr().write_all(&data)?,
            ExecEvent::Exit(code) => return Ok(u8::try_from(code).unwrap_or(1)),
        }
    }
}
