//! A port of the host leads to one node only.

use std::collections::HashMap;
use std::net::Ipv4Addr;

use model::node_config::{Port, Protocol};

use super::Finding;
use crate::expand::expand;
use crate::file::ClusterFile;
use crate::yaml::{Path, at};

/// What is taken of one port number: all addresses, or some.
#[derive(Default)]
struct Taken {
    all: Option<(Path, String)>,
    some: HashMap<Ipv4Addr, (Path, String)>,
}

pub fn check(file: &ClusterFile) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut taken: HashMap<(u16, Protocol), Taken> = HashMap::new();
    let nodes = expand(file).len();
    let own = (Path::new(), &file.ports, nodes);
    let groups = file.nodes.iter().enumerate();
    let groups = groups.map(|(i, g)| (at!["nodes", i], &g.ports, g.count.unwrap_or(1) as usize));
    for (at, ports, count) in std::iter::once(own).chain(groups) {
        for (index, port) in ports.iter().enumerate() {
            let place = [at.clone(), at!["ports", index]].concat();
            if count > 1 {
                let message = format!("{count} nodes cannot all have the port {} of the host", port.host);
                found.push(Finding::new(place, message));
                continue;
            }
            found.extend(take(taken.entry((port.host, port.protocol)).or_default(), port, place));
        }
    }
    found
}

fn take(taken: &mut Taken, port: &Port, place: Path) -> Option<Finding> {
    let listen = port.listen.filter(|a| !a.is_unspecified());
    let other = match listen {
        None => taken.all.as_ref().or_else(|| taken.some.values().next()),
        Some(address) => taken.all.as_ref().or_else(|| taken.some.get(&address)),
    };
    if let Some((first, text)) = other {
        let message = format!("{port} and {text} are the same port of the host");
        return Some(Finding::new(place, message).with(first.clone()));
    }
    match listen {
        None => taken.all = Some((place, port.to_string())),
        Some(address) => drop(taken.some.insert(address, (place, port.to_string()))),
    }
    None
}
