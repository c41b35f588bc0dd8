//! From the file to the cluster that is to be.

use std::net::Ipv4Addr;

use model::cluster::{Extras, Node};
use model::{Cluster, Cni, address};

use crate::expand::{Expanded, expand};
use crate::file::ClusterFile;

/// `base` has everything the file does not say: the existing cluster, or the defaults as a cluster
/// without nodes. Nodes that are there already keep their address and their place. `None` when the
/// node network or the pods' is full. Versions in the file must be whole ones by now ([`ClusterFile::set_versions`]).
pub fn resolve(file: &ClusterFile, base: &Cluster) -> Option<Cluster> {
    let mut cluster = base.clone();
    let set = |to: &mut String, from: &Option<String>| {
        if let Some(from) = from {
            to.clone_from(from);
        }
    };
    set(&mut cluster.name, &file.name);
    set(&mut cluster.kubernetes_version, &file.kubernetes_version);
    set(&mut cluster.namespace, &file.kubeconfig.namespace);
    set(&mut cluster.network.dns_domain, &file.networking.dns_domain);
    if let Some(driver) = file.driver.as_deref().and_then(|d| d.parse().ok()) {
        cluster.driver = driver;
    }
    cluster.cpus = file.cpus.unwrap_or(base.cpus);
    cluster.memory_mib = file.memory.unwrap_or(base.memory_mib);
    cluster.disk_mib = file.disk_size.unwrap_or(base.disk_mib);
    cluster.network.subnet = file.networking.node_subnet.unwrap_or(base.network.subnet);
    cluster.network.pod_cidr = file.networking.pod_subnet.unwrap_or(base.network.pod_cidr);
    cluster.network.service_cidr = file.networking.service_subnet.unwrap_or(base.network.service_cidr);
    cluster.api_port = file.api_server.port.unwrap_or(base.api_port);
    cluster.api_ips = file.api_server.extra_sans.iter().filter_map(|s| s.parse::<Ipv4Addr>().ok()).collect();
    cluster.api_names =
        file.api_server.extra_sans.iter().filter(|s| s.parse::<Ipv4Addr>().is_err()).cloned().collect();
    cluster.cert_expiration_hours = file.cert_expiration.unwrap_or(base.cert_expiration_hours);
    cluster.keep_context = file.kubeconfig.keep_context.unwrap_or(base.keep_context);
    cluster.embed_certs = file.kubeconfig.embed_certs.unwrap_or(base.embed_certs);
    if let Some(wait) = &file.wait {
        cluster.wait.components.clone_from(&wait.0);
    }
    cluster.addons.extend(file.addons.clone().unwrap_or_default());
    if let Some(cni) = file.cni.as_deref().and_then(|c| Cni::parse(c).ok()) {
        cluster.cni = cni;
    }
    cluster.extras = Extras {
        kube_proxy_mode: file.networking.kube_proxy_mode,
        manifests: file.manifests.clone(),
        images: file.images.clone(),
        load_balancers: base.extras.load_balancers,
        listen: base.extras.listen,
    };
    cluster.node_defaults = file.config();
    // These have a place of their own in the cluster.
    (cluster.node_defaults.cpus, cluster.node_defaults.memory_mib, cluster.node_defaults.disk_mib) =
        (None, None, None);
    cluster.nodes = nodes(file, &cluster)?;
    Some(cluster)
}

/// `cluster` has still the nodes of before.
fn nodes(file: &ClusterFile, cluster: &Cluster) -> Option<Vec<Node>> {
    let wanted = expand(file);
    let order = |node: &Expanded| cluster.nodes.iter().position(|n| n.name == node.name);
    let mut wanted: Vec<(usize, Expanded)> =
        wanted.into_iter().map(|node| (order(&node).unwrap_or(usize::MAX), node)).collect();
    wanted.sort_by_key(|(place, _)| *place);
    let mut nodes: Vec<Node> = Vec::new();
    for (place, wanted) in wanted {
        let old = cluster.nodes.get(place);
        let group = wanted.group.and_then(|index| file.nodes.get(index));
        let version =
            group.and_then(|g| g.kubernetes_version.as_ref()).unwrap_or(&cluster.kubernetes_version);
        nodes.push(Node {
            ip: match old {
                Some(old) => old.ip,
                None => free_address(cluster, &nodes)?,
            },
            worker: old.is_none_or(|old| old.worker),
            name: wanted.name,
            control_plane: wanted.control_plane,
            kubernetes_version: version.clone(),
            config: group.map(|g| g.config()).unwrap_or_default(),
        });
    }
    Some(nodes)
}

/// After the last one, as `node add` does; a gap is used only when there is nothing else. Addresses of
/// nodes that go are not given to those that come, because both are there for a while.
fn free_address(cluster: &Cluster, nodes: &[Node]) -> Option<Ipv4Addr> {
    let taken = |ip: Ipv4Addr| cluster.nodes.iter().chain(nodes).any(|n| n.ip == ip);
    let mut all = address::node_ips(cluster.network.subnet, cluster.network.pod_cidr).map(|(_, ip)| ip);
    let last = cluster.nodes.iter().chain(nodes).map(|n| n.ip).max();
    all.clone().find(|ip| last.is_none_or(|last| *ip > last)).or_else(|| all.find(|ip| !taken(*ip)))
}

impl ClusterFile {
    /// Replaces every version that is written (`1.37`, `stable`) by the one it means. The error names the
    /// place.
    pub fn set_versions<E>(
        &mut self,
        mean: impl Fn(&str) -> Result<String, E>,
    ) -> Result<(), (crate::yaml::Path, E)> {
        use crate::yaml::at;
        if let Some(version) = &mut self.kubernetes_version {
            *version = mean(version).map_err(|e| (at!["kubernetesVersion"], e))?;
        }
        for (index, group) in self.nodes.iter_mut().enumerate() {
            if let Some(version) = &mut group.kubernetes_version {
                *version = mean(version).map_err(|e| (at!["nodes", index, "kubernetesVersion"], e))?;
            }
        }
        Ok(())
    }
}
