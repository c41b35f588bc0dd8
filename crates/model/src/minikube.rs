//! A profile that minikube made. Its machines are minikube's and stay as they are; its configuration
//! is brought into the form of ours, so that the next `start` makes the same cluster here.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use ipnet::Ipv4Net;
use serde_json::{Map, Value, json};

use crate::config_file::{ConfigError, DEFAULT_POD_CIDR, SCHEMA_VERSION};
use crate::node_config::{Component, Mount, check_feature_gate, check_flag};
use crate::{Cni, DriverKind, NodeConfig, address, names};

const DEFAULT_PORT: u64 = 8443;
const DEFAULT_SERVICES: &str = "10.96.0.0/12";
const DEFAULT_SUBNET: Ipv4Addr = Ipv4Addr::new(192, 168, 49, 0);

/// Where a profile came from, and what of it is not as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Migrated {
    /// minikube's word for what its machines are.
    pub driver: String,
    pub notes: Vec<String>,
}

/// Ours always says so.
pub fn made(raw: &Map<String, Value>) -> bool {
    !raw.contains_key("Manykube")
}

/// The document in our form. What minikube has changed of it over the years (v1.30 to v1.38) is that
/// the port moved from the nodes to the cluster, and that keys were added.
pub fn adopt(raw: &Map<String, Value>) -> Result<(Map<String, Value>, Migrated), ConfigError> {
    let mut doc = raw.clone();
    let mut notes = Vec::new();
    let driver = text(&doc, "Driver").to_owned();
    let empty = Map::new();
    let kube = raw.get("KubernetesConfig").and_then(Value::as_object).unwrap_or(&empty);
    let version = text(kube, "KubernetesVersion").to_owned();
    if version == "v0.0.0" {
        let why = "it is a machine without Kubernetes (--no-kubernetes), which manykube does not make";
        return Err(ConfigError::Content(why.into()));
    }
    let mut nodes = listed(raw, kube);
    let subnet = number(&mut nodes, &mut notes)?;
    for node in &mut nodes {
        fill(node, "KubernetesVersion", &version);
        node.insert("ContainerRuntime".into(), "containerd".into());
    }
    let port = [raw.get("APIServerPort"), kube.get("NodePort"), nodes.first().and_then(|n| n.get("Port"))]
        .into_iter()
        .find_map(|p| p.and_then(Value::as_u64).filter(|p| *p > 0))
        .unwrap_or(DEFAULT_PORT);

    let mut new_kube = kube.clone();
    fill(&mut new_kube, "ServiceCIDR", DEFAULT_SERVICES);
    fill(&mut new_kube, "DNSDomain", "cluster.local");
    fill(&mut new_kube, "Namespace", "default");
    let runtime = text(kube, "ContainerRuntime");
    if !matches!(runtime, "" | "containerd") {
        notes.push(format!("containerd runs its containers instead of {runtime}"));
    }
    new_kube.insert("ContainerRuntime".into(), "containerd".into());
    if let Err(other) = Cni::parse(text(kube, "CNI")) {
        // kindnet is what minikube means by "many nodes, no wish".
        if other.0 != "kindnet" {
            notes.push(format!("manykube makes its pod network instead of {}", other.0));
        }
        new_kube.insert("CNI".into(), "".into());
    }
    let (defaults, pods) = options(raw, kube, &mut notes);
    doc.insert("Driver".into(), DriverKind::Native.to_string().into());
    doc.insert("APIServerPort".into(), port.into());
    doc.insert("KubernetesConfig".into(), new_kube.into());
    doc.insert("Nodes".into(), nodes.into_iter().map(Value::Object).collect());
    let ours = json!({
        "SchemaVersion": SCHEMA_VERSION,
        "Subnet": subnet,
        "PodCIDR": pods.unwrap_or_else(|| DEFAULT_POD_CIDR.to_owned()),
        "NodeDefaults": defaults,
    });
    doc.insert("Manykube".into(), ours);
    Ok((doc, Migrated { driver, notes }))
}

fn text<'a>(doc: &'a Map<String, Value>, key: &str) -> &'a str {
    doc.get(key).and_then(Value::as_str).unwrap_or("")
}

fn fill(doc: &mut Map<String, Value>, key: &str, default: &str) {
    if text(doc, key).is_empty() {
        doc.insert(key.into(), default.into());
    }
}

/// A list that is empty is a cluster of one, from before there were others.
fn listed(raw: &Map<String, Value>, kube: &Map<String, Value>) -> Vec<Map<String, Value>> {
    let nodes = raw.get("Nodes").and_then(Value::as_array).into_iter().flatten();
    let nodes: Vec<_> = nodes.filter_map(Value::as_object).cloned().collect();
    if !nodes.is_empty() {
        return nodes;
    }
    let only = json!({ "Name": "", "IP": text(kube, "NodeIP"), "ControlPlane": true, "Worker": true });
    only.as_object().cloned().into_iter().collect()
}

/// Nodes keep their addresses where these can be ours: one /24, neither the host's nor the virtual one.
fn number(nodes: &mut [Map<String, Value>], notes: &mut Vec<String>) -> Result<Ipv4Net, ConfigError> {
    let found: Vec<Option<Ipv4Addr>> = nodes.iter().map(|n| text(n, "IP").parse().ok()).collect();
    let first = found.iter().flatten().next().copied();
    let subnet = Ipv4Net::new_assert(first.unwrap_or(DEFAULT_SUBNET), 24).trunc();
    let usable = |ip: &Option<Ipv4Addr>| {
        ip.is_some_and(|ip| subnet.contains(&ip) && (2..254).contains(&ip.octets()[3]))
    };
    let distinct = found.iter().collect::<BTreeSet<_>>().len() == found.len();
    if distinct && found.iter().all(usable) {
        return Ok(subnet);
    }
    for (i, node) in (1u32..).zip(nodes.iter_mut()) {
        let ip = address::node_ip(subnet, i)
            .ok_or_else(|| ConfigError::Content(format!("{subnet} has no room for all of its nodes")))?;
        node.insert("IP".into(), ip.to_string().into());
    }
    if found.iter().any(Option::is_some) {
        notes.push(format!("its nodes get addresses of {subnet} in order"));
    }
    Ok(subnet)
}

/// What minikube keeps for all nodes in lists of its own; and the pod range, which is one of its options.
fn options(
    raw: &Map<String, Value>,
    kube: &Map<String, Value>,
    notes: &mut Vec<String>,
) -> (NodeConfig, Option<String>) {
    let mut config = NodeConfig::default();
    let mut pods = None;
    for option in kube.get("ExtraOptions").and_then(Value::as_array).into_iter().flatten() {
        let Some(option) = option.as_object() else { continue };
        let (component, key, value) = (text(option, "Component"), text(option, "Key"), text(option, "Value"));
        match (component.parse::<Component>(), key) {
            (Ok(Component::Kubeadm), "pod-network-cidr") => pods = Some(value.to_owned()),
            (Ok(Component::Kubeadm), _) => notes.push(format!("its option kubeadm.{key} does not apply")),
            (Ok(component), key) if check_flag(key).is_ok() => {
                config.extra_config.entry(component).or_default().insert(key.into(), value.into());
            }
            _ => notes.push(format!("its option {component}.{key} is not known")),
        }
    }
    for gate in text(kube, "FeatureGates").split(',').filter(|g| !g.is_empty()) {
        match gate.split_once('=').map(|(name, on)| (name, on.parse())) {
            Some((name, Ok(on))) if check_feature_gate(name).is_ok() => {
                config.feature_gates.insert(name.to_owned(), on);
            }
            _ => notes.push(format!("its feature gate {gate:?} is not known")),
        }
    }
    let mount = text(raw, "MountString");
    if raw.get("Mount").and_then(Value::as_bool) != Some(false) && !mount.is_empty() {
        match mount.parse::<Mount>() {
            Ok(mount) => config.mounts.push(mount),
            Err(why) => notes.push(format!("its mount cannot be made: {why}")),
        }
    }
    if raw.get("ExposedPorts").and_then(Value::as_array).is_some_and(|p| !p.is_empty()) {
        notes.push("its nodes answer on all their ports at their own addresses: none is published".into());
    }
    (config, pods)
}

/// The names minikube gives containers and virtual machines, which are still there.
pub fn machines(raw: &Map<String, Value>) -> Vec<String> {
    let profile = text(raw, "Name");
    let nodes = raw.get("Nodes").and_then(Value::as_array).into_iter().flatten();
    nodes.filter_map(Value::as_object).map(|n| names::machine(profile, text(n, "Name"))).collect()
}

#[cfg(test)]
#[path = "minikube_tests.rs"]
mod tests;
