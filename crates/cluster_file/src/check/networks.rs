//! Ranges of addresses that are apart, with room for all nodes.

use std::net::Ipv4Addr;

use ipnet::Ipv4Net;
use model::address;

use super::Finding;
use crate::expand::expand;
use crate::file::ClusterFile;
use crate::yaml::at;

/// As `start` has them.
const PODS: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::new(10, 244, 0, 0), 16);
const SERVICES: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::new(10, 96, 0, 0), 12);

pub fn check(file: &ClusterFile) -> Vec<Finding> {
    let net = &file.networking;
    let place = |key: &str| at!["networking", key];
    // (what, key, range, the file says so)
    let ranges = [
        ("node", "nodeSubnet", net.node_subnet, net.node_subnet.is_some()),
        (
            "service",
            "serviceSubnet",
            Some(net.service_subnet.unwrap_or(SERVICES)),
            net.service_subnet.is_some(),
        ),
        ("pod", "podSubnet", Some(net.pod_subnet.unwrap_or(PODS)), net.pod_subnet.is_some()),
    ];
    let mut found = Vec::new();
    for (i, (a, key_a, left, said_a)) in ranges.iter().enumerate() {
        for (b, key_b, right, said_b) in &ranges[i + 1..] {
            let (Some(left), Some(right)) = (left, right) else { continue };
            if !address::overlap(*left, *right) {
                continue;
            }
            // The blame is with what the file says: a default cannot be wrong.
            let (what, range, other, other_range, key) =
                if *said_b { (b, right, a, left, key_b) } else { (a, left, b, right, key_a) };
            let finding = Finding::new(
                place(key),
                format!("the {what} range {range} overlaps the {other} range {other_range}"),
            );
            found.push(if *said_a && *said_b { finding.with(place(key_a)) } else { finding });
        }
    }
    if let Some(pods) = net.pod_subnet {
        let (room, nodes) = (1usize << (24 - pods.prefix_len().min(24)), expand(file).len());
        if nodes > room {
            let plural = if room == 1 { "" } else { "s" };
            let message =
                format!("{pods} has room for {room} node{plural} (each gets a /24), and there are {nodes}");
            found.push(Finding::new(place("podSubnet"), message));
        }
    }
    found
}
