//! One /24 per profile: `.1` the host, `.2` … the nodes, `.254` the virtual address.

use std::net::Ipv4Addr;

use ipnet::Ipv4Net;

/// minikube's list of subnets: the third octet goes 49, 58, 67, …
const FIRST_OCTET: u8 = 49;
const STEP: u8 = 9;
const TRIES: u8 = 20;

fn at(subnet: Ipv4Net, host: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(subnet.network()) + host)
}

pub fn gateway(subnet: Ipv4Net) -> Ipv4Addr {
    at(subnet, 1)
}

pub fn virtual_ip(subnet: Ipv4Net) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(subnet.broadcast()) - 1)
}

/// The address of node `number` (1 is the first); `None` when the subnet is full.
pub fn node_ip(subnet: Ipv4Net, number: u32) -> Option<Ipv4Addr> {
    let ip = at(subnet, 1 + number);
    (number >= 1 && subnet.contains(&ip) && ip < virtual_ip(subnet)).then_some(ip)
}

/// What services of type LoadBalancer may have, unless a first and a last one are named: far from where nodes
/// begin. A cluster of so many nodes that they reach this far has fewer of them.
pub fn load_balancer_pool(
    subnet: Ipv4Net,
    named: Option<(Ipv4Addr, Ipv4Addr)>,
) -> impl Iterator<Item = Ipv4Addr> {
    let (first, last) = named.unwrap_or((at(subnet, 200), at(subnet, 253)));
    subnet
        .hosts()
        .filter(move |ip| (first..=last).contains(ip) && *ip > gateway(subnet) && *ip < virtual_ip(subnet))
}

/// Every node owns the /24 of the pod range that its own address picks, so that no two commands
/// have to agree about it and a node keeps its range across restarts.
pub fn pod_cidr(subnet: Ipv4Net, pods: Ipv4Net, ip: Ipv4Addr) -> Ipv4Net {
    let index = u32::from(ip) - u32::from(subnet.network());
    let base = u32::from(pods.network()) + (index.saturating_sub(2) << 8);
    Ipv4Net::new_assert(Ipv4Addr::from(base), 24)
}

/// Addresses with their numbers that a node may have: those that pick a range which lies in the pods'.
pub fn node_ips(subnet: Ipv4Net, pods: Ipv4Net) -> impl Iterator<Item = (u32, Ipv4Addr)> + Clone {
    let all = (1..).map_while(move |number| Some((number, node_ip(subnet, number)?)));
    all.filter(move |(_, ip)| pods.contains(&pod_cidr(subnet, pods, *ip)))
}

/// The hardware address of a node or bridge. The same address gives the same one, so that no ARP cache is wrong after a
/// restart, and nodes know each other's without asking.
pub fn mac(ip: Ipv4Addr) -> [u8; 6] {
    let [a, b, c, d] = ip.octets();
    [0x02, 0x6d, a, b, c, d]
}

/// The same as the kernel, nft and engines write it.
pub fn mac_text(ip: Ipv4Addr) -> String {
    mac(ip).map(|byte| format!("{byte:02x}")).join(":")
}

/// The service `kubernetes`.
pub fn api_service(services: Ipv4Net) -> Ipv4Addr {
    at(services, 1)
}

/// Where kubeadm puts the cluster's DNS.
pub fn dns_service(services: Ipv4Net) -> Ipv4Addr {
    at(services, 10)
}

/// Ports that other parts of a node listen on, and those that services may be given.
pub fn is_node_port_taken(port: u16) -> bool {
    matches!(port, 0 | 22 | 53 | 2379 | 2380 | 10248..=10250 | 10256 | 10257 | 10259 | 30000..=32767)
}

pub fn overlap(a: Ipv4Net, b: Ipv4Net) -> bool {
    a.contains(&b) || b.contains(&a)
}

/// The first /24 from `start` on (default 192.168.49.0) that touches none of `taken`.
pub fn free_subnet(start: Option<Ipv4Net>, taken: &[Ipv4Net]) -> Option<Ipv4Net> {
    let first = start.map_or(Ipv4Addr::new(192, 168, FIRST_OCTET, 0), |s| s.network());
    let [a, b, c, _] = first.octets();
    (0..TRIES)
        .filter_map(|i| c.checked_add(STEP.checked_mul(i)?))
        .map(|third| Ipv4Net::new_assert(Ipv4Addr::new(a, b, third, 0), 24))
        .find(|net| !taken.iter().any(|t| overlap(*t, *net)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn net(s: &str) -> Ipv4Net {
        s.parse().unwrap()
    }

    #[test]
    fn addresses_of_a_profile() {
        let s = net("192.168.49.0/24");
        assert_eq!(gateway(s).to_string(), "192.168.49.1");
        assert_eq!(node_ip(s, 1).unwrap().to_string(), "192.168.49.2");
        assert_eq!(node_ip(s, 3).unwrap().to_string(), "192.168.49.4");
        assert_eq!(virtual_ip(s).to_string(), "192.168.49.254");
        assert_eq!(node_ip(s, 252).unwrap().to_string(), "192.168.49.253");
        assert_eq!(node_ip(s, 253), None);
        assert_eq!(pod_cidr(s, net("10.244.0.0/16"), node_ip(s, 1).unwrap()), net("10.244.0.0/24"));
        assert_eq!(pod_cidr(s, net("10.244.0.0/16"), node_ip(s, 4).unwrap()), net("10.244.3.0/24"));
    }

    #[test]
    fn load_balancers_have_neither_the_hosts_address_nor_the_virtual_one() {
        let s = net("192.168.49.0/24");
        let ends = |named| {
            let all: Vec<Ipv4Addr> = load_balancer_pool(s, named).collect();
            (all.len(), all.first().map(|ip| ip.octets()[3]), all.last().map(|ip| ip.octets()[3]))
        };
        let ip = |last| Ipv4Addr::new(192, 168, 49, last);
        assert_eq!(ends(None), (54, Some(200), Some(253)));
        assert_eq!(ends(Some((ip(100), ip(109)))), (10, Some(100), Some(109)));
        assert_eq!(ends(Some((ip(0), ip(255)))), (252, Some(2), Some(253)));
    }

    #[test]
    fn subnets_step_by_nine() {
        assert_eq!(free_subnet(None, &[]), Some(net("192.168.49.0/24")));
        assert_eq!(free_subnet(None, &[net("192.168.49.0/24")]), Some(net("192.168.58.0/24")));
        assert_eq!(free_subnet(None, &[net("192.168.48.0/23")]), Some(net("192.168.58.0/24")));
        assert_eq!(free_subnet(None, &[net("192.168.0.0/16")]), None);
        assert_eq!(free_subnet(Some(net("172.20.5.0/24")), &[]), Some(net("172.20.5.0/24")));
    }

    proptest! {
        #[test]
        fn a_free_subnet_is_free(taken in prop::collection::vec((0u8..255, 16u8..29), 0..12)) {
            let taken: Vec<Ipv4Net> = taken.into_iter()
                .map(|(c, p)| Ipv4Net::new(Ipv4Addr::new(192, 168, c, 0), p).unwrap().trunc()).collect();
            if let Some(free) = free_subnet(None, &taken) {
                prop_assert!(taken.iter().all(|t| !overlap(*t, free)));
            }
        }

        #[test]
        fn nodes_never_share_an_address(a in 1u32..252, b in 1u32..252) {
            let s = net("192.168.49.0/24");
            let (x, y) = (node_ip(s, a).unwrap(), node_ip(s, b).unwrap());
            prop_assert_eq!(a == b, x == y);
            let pods = net("10.244.0.0/16");
            prop_assert_eq!(a == b, pod_cidr(s, pods, x) == pod_cidr(s, pods, y));
        }

        #[test]
        fn no_range_leaves_the_pods(prefix in 8u8..=24) {
            let (s, pods) = (net("192.168.49.0/24"), Ipv4Net::new(Ipv4Addr::new(10, 0, 0, 0), prefix).unwrap());
            let all: Vec<Ipv4Net> = node_ips(s, pods).map(|(_, ip)| pod_cidr(s, pods, ip)).collect();
            prop_assert!(all.iter().all(|range| pods.contains(range)));
            prop_assert_eq!(all.len(), 252.min(1usize << (24 - prefix)), "all that there is room for");
        }
    }
}
