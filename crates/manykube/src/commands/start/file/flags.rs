//! The part of the file that flags can say as well, as flags: one way to check it.

use std::time::Duration;

use cluster_file::{ClusterFile, Role};
use model::resources::{self, HostSize};
use model::{Cluster, Fault};

use super::super::{Args, cni, desired, values};

/// `args`, with what the file says where they say nothing.
pub fn as_flags(args: &Args, file: &ClusterFile) -> Args {
    let mut args = args.clone();
    let count = |g: &cluster_file::NodeGroup| g.count.unwrap_or(1);
    let planes = file.nodes.iter().filter(|g| g.role == Role::ControlPlane).map(count).sum::<u32>();
    args.nodes = Some(file.nodes.iter().map(count).sum::<u32>().max(1));
    args.control_planes = Some(planes.max(1));
    let text = |to: &mut Option<String>, from: Option<String>| {
        if to.is_none() {
            *to = from;
        }
    };
    text(&mut args.driver, file.driver.clone());
    text(&mut args.kubernetes_version, file.kubernetes_version.clone());
    text(&mut args.cpus, file.cpus.map(|n| n.to_string()));
    text(&mut args.memory, file.memory.map(|n| n.to_string()));
    text(&mut args.disk_size, file.disk_size.map(|n| n.to_string()));
    text(&mut args.subnet, file.networking.node_subnet.map(|n| n.to_string()));
    text(&mut args.service_cluster_ip_range, file.networking.service_subnet.map(|n| n.to_string()));
    text(&mut args.dns_domain, file.networking.dns_domain.clone());
    text(&mut args.cni, file.cni.clone());
    text(&mut args.namespace, file.kubeconfig.namespace.clone());
    args.apiserver_port = args.apiserver_port.or(file.api_server.port);
    let hours = file.cert_expiration.map(|h| Duration::from_secs(u64::from(h) * 3600));
    args.cert_expiration = args.cert_expiration.or(hours);
    if let (None, Some(wait)) = (&args.wait, &file.wait) {
        let none = vec!["none".to_owned()];
        let words: Vec<String> = wait.0.iter().map(|w| w.as_str().to_owned()).collect();
        args.wait = Some(if words.is_empty() { none } else { words });
    }
    args.keep_context |= file.kubeconfig.keep_context.unwrap_or(false);
    args.embed_certs |= file.kubeconfig.embed_certs.unwrap_or(false);
    args
}

/// The existing cluster with what the flags say, also what cannot be changed: `diff` is to see it.
pub fn over(old: &Cluster, args: &Args, version: &str, host: HostSize) -> Result<Cluster, Fault> {
    let mut cluster = old.clone();
    version.clone_into(&mut cluster.kubernetes_version);
    if let Some(text) = &args.cpus {
        cluster.cpus = resources::parse_cpus(text)?.or_all(host.cpus);
    }
    if let Some(text) = &args.memory {
        cluster.memory_mib = resources::parse_memory(text)?.or_all(host.memory_mib);
    }
    if let Some(text) = &args.disk_size {
        cluster.disk_mib = resources::parse_disk(text)?;
    }
    if let Some(text) = &args.subnet {
        cluster.network.subnet = values::subnet(text)?;
    }
    if let Some(text) = &args.service_cluster_ip_range {
        cluster.network.service_cidr = values::service_range(text)?;
    }
    if let Some(text) = &args.dns_domain {
        cluster.network.dns_domain = values::domain("dns-domain", text)?;
    }
    if let Some(cni) = cni::asked(args)? {
        cluster.cni = cni;
    }
    if let Some(port) = args.apiserver_port {
        cluster.api_port = values::api_port(port)?;
    }
    desired::changeable(&mut cluster, args)?;
    Ok(cluster)
}
