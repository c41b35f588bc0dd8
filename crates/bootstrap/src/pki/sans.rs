//! The names and addresses that each serving certificate answers for.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::Ipv4Net;
use model::{Cluster, Node, names};

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum San {
    Dns(String),
    Ip(IpAddr),
}

pub type Sans = BTreeSet<San>;

impl fmt::Display for San {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            San::Dns(name) => f.write_str(name),
            San::Ip(ip) => ip.fmt(f),
        }
    }
}

/// minikube's default name of the API server.
const API_SERVER_NAME: &str = "minikubeCA";

fn dns(name: impl Into<String>) -> San {
    San::Dns(name.into())
}

fn ip(address: Ipv4Addr) -> San {
    San::Ip(address.into())
}

/// The `n`th address of the service range: 1 is the API's, 10 is the DNS's, by kubeadm's rule.
pub fn service_ip(range: Ipv4Net, n: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(range.network()) + n)
}

/// One certificate serves on all control planes, so it names them all. The virtual address is in
/// it from the first day, so that a cluster of one can grow without being rebuilt.
pub fn apiserver(cluster: &Cluster) -> Sans {
    let domain = &cluster.network.dns_domain;
    let mut sans = Sans::from([
        dns("kubernetes"),
        dns("kubernetes.default"),
        dns("kubernetes.default.svc"),
        dns(format!("kubernetes.default.svc.{domain}")),
        dns("localhost"),
        dns(API_SERVER_NAME),
        dns(names::CONTROL_PLANE_HOST),
        ip(Ipv4Addr::LOCALHOST),
        ip(Ipv4Addr::new(10, 0, 0, 1)),
        ip(service_ip(cluster.network.service_cidr, 1)),
        ip(cluster.vip()),
    ]);
    for node in cluster.control_planes() {
        sans.extend([dns(cluster.machine(node)), ip(node.ip)]);
    }
    sans.extend(cluster.api_names.iter().map(dns));
    sans.extend(cluster.api_ips.iter().copied().map(ip));
    sans
}

/// A server on one node that is also spoken to from inside the node.
pub fn on_node(cluster: &Cluster, node: &Node) -> Sans {
    let mut sans = local();
    sans.extend([dns(cluster.machine(node)), ip(node.ip)]);
    sans
}

/// A server that only its own node speaks to.
pub fn local() -> Sans {
    Sans::from([dns("localhost"), ip(Ipv4Addr::LOCALHOST), San::Ip(Ipv6Addr::LOCALHOST.into())])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn the_apiserver_answers_for_the_virtual_address_from_day_one() {
        let text: Vec<String> = apiserver(&fixture::cluster(1, 1)).iter().map(San::to_string).collect();
        insta::assert_snapshot!(text.join("\n"));
    }

    #[test]
    fn every_control_plane_is_named() {
        let sans = apiserver(&fixture::cluster(3, 1));
        for name in ["demo", "demo-m02", "demo-m03"] {
            assert!(sans.contains(&dns(name)), "{name}");
        }
        assert!(sans.contains(&ip("192.168.49.4".parse().unwrap())));
        assert!(!sans.contains(&dns("demo-m04")), "a worker serves no API");
    }
}
