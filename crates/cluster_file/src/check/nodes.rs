//! Nodes: their number, their names, and what their roles allow.

use std::collections::HashMap;

use model::resources::{MIN_CPUS, MIN_MEMORY_MIB};
use model::skew;

use super::Finding;
use crate::expand::expand;
use crate::file::{ClusterFile, NodeGroup, Role};
use crate::yaml::{Path, at};

/// A /24 without the host's, the virtual and the two reserved addresses.
const MOST: u32 = 252;

pub fn counts(file: &ClusterFile) -> Vec<Finding> {
    let mut total = 0u32;
    for (index, group) in file.nodes.iter().enumerate() {
        total = total.saturating_add(group.count.unwrap_or(1));
        if total > MOST {
            let all: u64 = file.nodes.iter().map(|g| u64::from(g.count.unwrap_or(1))).sum();
            let message = format!("{all} nodes: a cluster has up to {MOST}");
            return vec![Finding::new(at!["nodes", index, "count"], message)];
        }
    }
    Vec::new()
}

pub fn names(file: &ClusterFile) -> Vec<Finding> {
    let mut found = Vec::new();
    for (index, group) in file.nodes.iter().enumerate() {
        let count = group.count.unwrap_or(1);
        match (&group.name, &group.name_prefix) {
            (Some(_), Some(_)) => {
                let message = "a group has either name or namePrefix";
                found.push(Finding::new(at!["nodes", index, "namePrefix"], message));
            }
            (Some(name), None) if count > 1 => {
                let message = format!("{count} nodes cannot all be named {name:?}: use namePrefix");
                found.push(Finding::new(at!["nodes", index, "count"], message));
            }
            _ => {}
        }
    }
    if !found.is_empty() {
        return found;
    }
    let place = |group: usize| -> Path {
        let key = if file.nodes[group].name.is_some() { "name" } else { "namePrefix" };
        at!["nodes", group, key]
    };
    let mut seen: HashMap<String, usize> = HashMap::new();
    // In the order of the file, so that the second is the one that is wrong.
    let mut nodes: Vec<(usize, String)> =
        expand(file).into_iter().filter_map(|node| Some((node.group?, node.name))).collect();
    nodes.sort_by_key(|(group, _)| *group);
    for (group, name) in nodes {
        match seen.get(&name) {
            Some(first) => {
                let message = format!("two nodes are named {name:?}");
                found.push(Finding::new(place(group), message).with(place(*first)));
            }
            None => {
                seen.insert(name, group);
            }
        }
    }
    found
}

pub fn roles(file: &ClusterFile) -> Vec<Finding> {
    let mut found = Vec::new();
    let planes = |group: &&NodeGroup| group.role == Role::ControlPlane;
    if !file.nodes.is_empty() && !file.nodes.iter().any(|g| planes(&g)) {
        let message = "there is no control plane: give one group \"role: control-plane\"";
        found.push(Finding::new(at!["nodes"], message));
    }
    if file.nodes.is_empty() {
        found.extend(plane_size(file, None));
    }
    for (index, group) in file.nodes.iter().enumerate() {
        let control_plane = group.role == Role::ControlPlane;
        if control_plane {
            found.extend(plane_size(file, Some((index, group))));
        } else {
            found.extend(worker_parts(index, group));
        }
        if let Some(version) = &group.kubernetes_version {
            // The cluster's default is known only where the command runs; that it is another one is sure enough.
            let cluster = file.kubernetes_version.as_deref();
            let cluster = cluster.unwrap_or(if control_plane { "of the cluster" } else { version });
            if let Err(message) = skew::check(cluster, version, control_plane) {
                found.push(Finding::new(at!["nodes", index, "kubernetesVersion"], message));
            }
        }
    }
    found
}

/// kubeadm refuses less.
fn plane_size(file: &ClusterFile, group: Option<(usize, &NodeGroup)>) -> Vec<Finding> {
    let own = group.map(|(_, g)| (g.cpus, g.memory)).unwrap_or_default();
    let place = |key: &str, own: bool| match group {
        Some((index, _)) if own => at!["nodes", index, key],
        _ => at![key],
    };
    let mut found = Vec::new();
    if let Some(cpus) = own.0.or(file.cpus).filter(|n| *n < MIN_CPUS) {
        let message = format!("a control plane needs at least {MIN_CPUS} CPUs, not {cpus}");
        found.push(Finding::new(place("cpus", own.0.is_some()), message));
    }
    if let Some(memory) = own.1.or(file.memory).filter(|n| *n < MIN_MEMORY_MIB) {
        let message = format!("a control plane needs at least {MIN_MEMORY_MIB} MiB of memory, not {memory}");
        found.push(Finding::new(place("memory", own.1.is_some()), message));
    }
    found
}

/// A worker may inherit what only control planes use, but to ask for it is a mistake.
fn worker_parts(index: usize, group: &NodeGroup) -> Vec<Finding> {
    let flags = group.extra_config.0.keys().filter(|c| !c.on_workers()).map(|c| ("extraConfig", c.as_str()));
    let binaries = group.binaries.keys().filter(|b| !b.on_workers()).map(|b| ("binaries", b.as_str()));
    let wrong = |(key, part): (&str, &str)| {
        Finding::new(at!["nodes", index, key, part], format!("a worker runs no {part}"))
    };
    flags.chain(binaries).map(wrong).collect()
}
