//! From the cluster that is wanted to the machine a driver makes.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;

use anyhow::{Context, Result};
use bootstrap::{Options, Pki, ProxyMode};
use drivers::{Bind, MachineSpec};
use image::{NodeImage, Store};
use model::node_config::{Binary, Port};
use model::node_spec::{Election, HostEntry, NodeFile, NodeNetwork, NodeSpec, PEERS_PATH, Peers, SPEC_PATH};
use model::{Cluster, Cni, Home, Node, VipBy, names};

use super::channel::Machines;
use super::registry;

/// Where the image has the programs that nodes run themselves.
const IMAGE_PROGRAMS: &str = "/usr/bin";
/// SSH, Docker, a registry and its proxy: those of minikube, besides the API.
const FORWARDED: [u16; 4] = [22, 2376, 5000, 32443];

/// The image of a version.
pub fn image_of(home: &Home, version: &str) -> Result<NodeImage> {
    Store::new(home.cache())
        .find(version)?
        .with_context(|| format!("no node image of Kubernetes {version} is in the store"))
}

/// What it takes to create a machine, as opposed to booting it.
pub struct New<'a> {
    pub pki: &'a Pki,
    /// Of a control plane that joins: see `bootstrap::Options`.
    pub join: Option<String>,
    /// Its API server comes later than that of the primary.
    pub hold_api: bool,
    /// See `bootstrap::Options`.
    pub by_kubeadm: bool,
    /// Control planes that are not to take part in the election.
    pub leaving: &'a [String],
}

/// With `new`, all files of a machine that is to be created; without, what it takes to boot one.
pub fn spec(home: &Home, cluster: &Cluster, node: &Node, new: Option<New<'_>>) -> Result<MachineSpec> {
    let image = root_image(home, cluster, node)?;
    let mut files = Vec::new();
    if let Some(New { pki, join, hold_api, by_kubeadm, leaving }) = new {
        let options = Options { join, hold_api, by_kubeadm, ..options(cluster, &image)? };
        files = bootstrap::node_files(cluster, node, pki, &options)?;
        let document = node_spec(cluster, node, &options);
        files.push(NodeFile::new(SPEC_PATH, 0o600, serde_json::to_vec_pretty(&document)?));
        files.push(peers_file(home, cluster, leaving)?);
        files.extend(election_file(home, cluster, node)?);
    }
    Ok(MachineSpec {
        name: cluster.machine(node),
        cluster: cluster.clone(),
        ip: node.ip,
        image,
        cpus: cluster.node_cpus(node),
        memory_mib: cluster.node_memory_mib(node),
        disk_mib: cluster.node_disk_mib(node),
        files,
        binds: binds(home, cluster, node)?,
        ports: ports(cluster, node),
        forwarded: [cluster.api_port].into_iter().chain(FORWARDED).collect(),
        listen: cluster.extras.listen.unwrap_or(Ipv4Addr::LOCALHOST),
    })
}

/// What a node's root is made of. An older kubelet and kube-proxy run in the cluster's image as well: all
/// else that the cluster puts on every node is of the cluster's version.
pub fn root_image(home: &Home, cluster: &Cluster, node: &Node) -> Result<NodeImage> {
    match cluster.config_of(node).base_image {
        Some(name) => Store::new(home.cache()).named(&name),
        None => image_of(home, &cluster.kubernetes_version),
    }
}

/// The user's directories, and programs that take the place of the image's.
fn binds(home: &Home, cluster: &Cluster, node: &Node) -> Result<Vec<Bind>> {
    let config = cluster.config_of(node);
    let program =
        |host: PathBuf, dir: &str, name: &str| Bind { host, node: format!("{dir}/{name}"), read_only: true };
    let mut binds = Vec::new();
    if node.kubernetes_version != cluster.kubernetes_version {
        let version = &node.kubernetes_version;
        let other = Store::new(home.cache()).node_programs(version)?;
        let other = other.with_context(|| format!("no kubelet {version} is in the store"))?;
        binds.push(program(other.kubelet, IMAGE_PROGRAMS, "kubelet"));
        binds.push(program(other.kube_proxy, bootstrap::paths::PROGRAMS, "kube-proxy"));
    }
    for (binary, path) in &config.binaries {
        let in_image = matches!(binary, Binary::Kubelet | Binary::Kubeadm | Binary::Kubectl);
        let dir = if in_image { IMAGE_PROGRAMS } else { bootstrap::paths::PROGRAMS };
        let own = program(path.into(), dir, binary.as_str());
        binds.retain(|b: &Bind| b.node != own.node);
        binds.push(own);
    }
    binds.extend(config.mounts.into_iter().map(|m| Bind {
        host: m.host.into(),
        node: m.node,
        read_only: m.read_only,
    }));
    binds.extend(registry::bind(home, cluster));
    Ok(binds)
}

/// What the cluster publishes leads to its primary: a port of the host leads to one node.
fn ports(cluster: &Cluster, node: &Node) -> Vec<Port> {
    let primary = cluster.primary().is_some_and(|p| p.name == node.name);
    if primary { cluster.config_of(node).ports } else { node.config.ports.clone() }
}

/// The document that a node which runs was made from, with another size.
pub async fn tell_size(driver: &Machines, machine: &str, spec: &MachineSpec) -> Result<()> {
    let node = driver.node(machine).await?;
    let text = node.read(SPEC_PATH).await?.context("the node has no description")?;
    let mut document: NodeSpec = serde_json::from_slice(&text).context("read the node's description")?;
    (document.cpus, document.memory_mib) = (Some(spec.cpus), Some(spec.memory_mib));
    let file = NodeFile::new(SPEC_PATH, 0o600, serde_json::to_vec_pretty(&document)?);
    Ok(node.put(&[file]).await?)
}

pub fn options(cluster: &Cluster, image: &NodeImage) -> Result<Options> {
    Ok(Options {
        pause_image: find_image(image, "/pause:")?,
        // The host's own guards are nft rules, so a kernel that got this far has nftables.
        proxy_mode: match cluster.extras.kube_proxy_mode {
            Some(model::cluster::ProxyMode::Iptables) => ProxyMode::Iptables,
            _ => ProxyMode::Nftables,
        },
        nameservers: nameservers(),
        cgroup_v1: drivers::cgroup_v1()?,
        user_namespace: drivers::user_namespace::is_own(),
        join: None,
        hold_api: false,
        by_kubeadm: false,
    })
}

/// The full name of an image that lies in the node image.
pub fn find_image(image: &NodeImage, part: &str) -> Result<String> {
    let found = image.manifest.images.iter().find(|i| i.contains(part));
    found.cloned().with_context(|| format!("node image {} has no {part} image", image.name))
}

/// The list of nodes as it is to lie in every one of them. The virtual address is held by a member of etcd: a control
/// plane that left it, or is about to, is not on the list of control planes.
pub fn peers_file(home: &Home, cluster: &Cluster, leaving: &[String]) -> Result<NodeFile> {
    // A node that was elected once is not told to hold the address for good: once an election, always one.
    let elects = cluster.nodes.iter().any(|n| {
        let text = drivers::machine::files::read(home, &cluster.machine(n), PEERS_PATH);
        text.and_then(|t| serde_json::from_slice::<Peers>(&t).ok()).is_some_and(|p| p.election.is_some())
    });
    let peers = peers(cluster, leaving, elects);
    Ok(NodeFile::new(PEERS_PATH, 0o600, serde_json::to_vec_pretty(&peers)?))
}

/// The key that the election takes, for those who take part.
pub fn election_file(home: &Home, cluster: &Cluster, node: &Node) -> Result<Option<NodeFile>> {
    let wanted = node.control_plane && cluster.vip_by == VipBy::Agent;
    wanted.then(|| bootstrap::pki::election::file(home, &cluster.name)).transpose()
}

/// Who else is there: the same document on every node.
fn peers(cluster: &Cluster, leaving: &[String], elects: bool) -> Peers {
    let stays = |n: &&Node| !leaving.contains(&cluster.machine(n));
    Peers {
        control_planes: cluster.control_planes().filter(stays).map(|n| n.ip).collect(),
        nodes: cluster.nodes.iter().map(|n| n.ip).collect(),
        election: (cluster.vip_by == VipBy::Agent && (elects || cluster.is_ha()))
            .then(|| Election::new(cluster.vip(), cluster.api_port)),
        load_balancers: cluster.extras.load_balancers,
    }
}

fn node_spec(cluster: &Cluster, node: &Node, options: &Options) -> NodeSpec {
    let (prepare, kubelet) = if options.by_kubeadm {
        (vec![bootstrap::reset()], bootstrap::joining_kubelet(cluster, node))
    } else {
        bootstrap::node_spec_parts(cluster, node, options.hold_api)
    };
    // Not for one that joins: the certificate of the primary was made before anybody knew of it.
    let early = options.hold_api && options.join.is_none();
    let primary = cluster.primary().filter(|p| early && p.name != node.name);
    let subnet = cluster.network.subnet;
    let entry = |ip, name: &str| HostEntry { ip, name: name.to_owned() };
    NodeSpec {
        profile: cluster.name.clone(),
        machine: cluster.machine(node),
        control_plane: node.control_plane,
        network: NodeNetwork {
            address: ipnet::Ipv4Net::new_assert(node.ip, subnet.prefix_len()),
            gateway: cluster.gateway(),
            vip: (node.control_plane && !cluster.is_ha() && cluster.vip_by == VipBy::Agent)
                .then(|| cluster.vip()),
            pods: (cluster.cni == Cni::BuiltIn).then(|| cluster.pod_cidr_of(node)),
            cluster_pods: cluster.network.pod_cidr,
            services: cluster.network.service_cidr,
            api: Some(SocketAddrV4::new(cluster.vip(), cluster.api_port)),
            dns: options.nameservers.clone(),
            mtu: drivers::MTU,
        },
        hosts: vec![
            entry(cluster.gateway(), names::HOST_HOST),
            entry(cluster.vip(), names::CONTROL_PLANE_HOST),
        ],
        prepare,
        kubelet,
        early_api: primary.map(|p| SocketAddrV4::new(p.ip, cluster.api_port)),
        cpus: Some(cluster.node_cpus(node)),
        memory_mib: Some(cluster.node_memory_mib(node)),
    }
}

/// The host's name servers that a node can reach: one on a loopback address is the host's alone,
/// and then the file of the resolver behind it names the real ones.
fn nameservers() -> Vec<Ipv4Addr> {
    ["/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"]
        .iter()
        .filter_map(|file| std::fs::read_to_string(file).ok())
        .map(|text| parse_resolv_conf(&text))
        .find(|servers| !servers.is_empty())
        .unwrap_or_default()
}

fn parse_resolv_conf(text: &str) -> Vec<Ipv4Addr> {
    text.lines()
        .filter_map(|line| line.trim().strip_prefix("nameserver")?.trim().parse::<Ipv4Addr>().ok())
        .filter(|ip| !ip.is_loopback() && !ip.is_unspecified())
        .take(3)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_resolvers_are_not_for_nodes() {
        let text = "# x\nnameserver 127.0.0.53\nnameserver ::1\nnameserver 9.9.9.9\noptions edns0\n";
        assert_eq!(parse_resolv_conf(text), ["9.9.9.9".parse::<Ipv4Addr>().unwrap()]);
        assert!(parse_resolv_conf("").is_empty());
    }
}
