//! The profile's `config.json`: minikube's ClusterConfig, so that tools that read it keep working.
//! What minikube's schema has no room for lies under one extra key, `Manykube`. Keys we do not know
//! are kept when a file is written again.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use ipnet::Ipv4Net;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::cluster::{Cluster, DriverKind, Extras, Network, Node, Wait, WaitFor};
use crate::minikube::{self, Migrated};
use crate::{Cni, NodeConfig, VipBy, address};

/// Of what lies under `Manykube`. Raised when an older manykube would misread a file.
pub const SCHEMA_VERSION: u32 = 1;
pub const DEFAULT_POD_CIDR: &str = "10.244.0.0/16";
/// Go's durations are nanoseconds in 63 bits: no more hours than this fit.
pub const MAX_CERT_HOURS: u32 = 2_562_047;
const HOUR_NANOS: i64 = 3_600_000_000_000;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    #[error("line {line}, column {column}: {message}")]
    Syntax { line: usize, column: usize, message: String },
    #[error(
        "its Manykube.SchemaVersion is {found}, and this version reads up to {SCHEMA_VERSION}: use a newer manykube"
    )]
    Newer { found: u32 },
    #[error("the driver {0:?} is not one of manykube's")]
    Driver(String),
    #[error("{0}")]
    Content(String),
}

impl From<serde_json::Error> for ConfigError {
    fn from(e: serde_json::Error) -> ConfigError {
        // serde_json appends the place to its text; it is said once, in front.
        let text = e.to_string();
        let place = format!(" at line {} column {}", e.line(), e.column());
        let message = text.strip_suffix(&place).unwrap_or(&text).to_owned();
        ConfigError::Syntax { line: e.line(), column: e.column(), message }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct File {
    name: String,
    #[serde(default)]
    driver: String,
    #[serde(default)]
    memory: u32,
    #[serde(default, rename = "CPUs")]
    cpus: u32,
    #[serde(default)]
    disk_size: u32,
    #[serde(default, rename = "APIServerPort")]
    api_port: u16,
    #[serde(default)]
    keep_context: bool,
    #[serde(default)]
    embed_certs: bool,
    #[serde(default)]
    cert_expiration: i64,
    #[serde(default)]
    addons: Option<BTreeMap<String, bool>>,
    #[serde(default)]
    verify_components: Option<BTreeMap<String, bool>>,
    kubernetes_config: KubernetesConfig,
    nodes: Vec<FileNode>,
    manykube: Extra,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct KubernetesConfig {
    kubernetes_version: String,
    #[serde(default)]
    namespace: String,
    #[serde(default, rename = "APIServerNames")]
    api_names: Option<Vec<String>>,
    #[serde(default, rename = "APIServerIPs")]
    api_ips: Option<Vec<Ipv4Addr>>,
    #[serde(default, rename = "DNSDomain")]
    dns_domain: String,
    #[serde(rename = "ServiceCIDR")]
    service_cidr: Ipv4Net,
    #[serde(default, rename = "CNI")]
    cni: String,
    #[serde(default, rename = "LoadBalancerStartIP")]
    first_load_balancer: String,
    #[serde(default, rename = "LoadBalancerEndIP")]
    last_load_balancer: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct FileNode {
    name: String,
    #[serde(rename = "IP")]
    ip: Ipv4Addr,
    kubernetes_version: String,
    #[serde(default)]
    control_plane: bool,
    #[serde(default)]
    worker: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Extra {
    subnet: Ipv4Net,
    #[serde(rename = "PodCIDR")]
    pod_cidr: Ipv4Net,
    #[serde(default)]
    nodes: BTreeMap<String, NodeConfig>,
    #[serde(default)]
    node_defaults: NodeConfig,
    #[serde(default)]
    extras: Extras,
    #[serde(default)]
    kube_vip: Option<KubeVip>,
}

/// There when kube-vip holds the virtual address.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct KubeVip {
    image: String,
}

/// A file as it was read: what it means to us, and everything that was in it.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfigFile {
    pub cluster: Cluster,
    pub raw: Map<String, Value>,
    /// There when minikube wrote it.
    pub migrated: Option<Migrated>,
}

/// Only the part that says whether the rest can be understood.
#[derive(Deserialize)]
struct Versioned {
    #[serde(default, rename = "Manykube")]
    manykube: Option<SchemaVersion>,
}

#[derive(Deserialize)]
struct SchemaVersion {
    #[serde(default, rename = "SchemaVersion")]
    version: u32,
}

pub fn parse(text: &str) -> Result<ConfigFile, ConfigError> {
    let raw: Map<String, Value> = serde_json::from_str(text)?;
    if let Some(found) = serde_json::from_str::<Versioned>(text)?.manykube.map(|m| m.version)
        && found > SCHEMA_VERSION
    {
        return Err(ConfigError::Newer { found });
    }
    if minikube::made(&raw) {
        let (doc, migrated) = minikube::adopt(&raw)?;
        let file =
            serde_json::from_value(Value::Object(doc)).map_err(|e| ConfigError::Content(e.to_string()))?;
        return Ok(ConfigFile { cluster: cluster(file)?, raw, migrated: Some(migrated) });
    }
    // Read a second time, typed, so that a wrong value is reported with its line and column.
    Ok(ConfigFile { cluster: cluster(serde_json::from_str(text)?)?, raw, migrated: None })
}

fn cluster(file: File) -> Result<Cluster, ConfigError> {
    let driver: DriverKind = file.driver.parse().map_err(|()| ConfigError::Driver(file.driver.clone()))?;
    if file.nodes.is_empty() {
        return Err(ConfigError::Content("it lists no nodes".into()));
    }
    if file.nodes.iter().any(|n| n.kubernetes_version.is_empty()) {
        return Err(ConfigError::Content("a node has no KubernetesVersion".into()));
    }
    let mut extra = file.manykube;
    let nodes = file.nodes.into_iter().map(|n| Node {
        config: extra.nodes.remove(&n.name).unwrap_or_default(),
        name: n.name,
        ip: n.ip,
        control_plane: n.control_plane,
        worker: n.worker,
        kubernetes_version: n.kubernetes_version,
    });
    let verify = file.verify_components.unwrap_or_default();
    let kube = file.kubernetes_config;
    let load_balancers = load_balancers(&kube, extra.subnet);
    let cni = Cni::parse(&kube.cni)
        .map_err(|other| ConfigError::Content(format!("its CNI {:?} is not one of manykube's", other.0)))?;
    Ok(Cluster {
        name: file.name,
        driver,
        kubernetes_version: kube.kubernetes_version,
        cpus: file.cpus,
        memory_mib: file.memory,
        disk_mib: file.disk_size,
        api_port: file.api_port,
        nodes: nodes.collect(),
        network: Network {
            subnet: extra.subnet,
            pod_cidr: extra.pod_cidr,
            service_cidr: kube.service_cidr,
            dns_domain: kube.dns_domain,
        },
        api_names: kube.api_names.unwrap_or_default(),
        api_ips: kube.api_ips.unwrap_or_default(),
        cert_expiration_hours: u32::try_from(file.cert_expiration / HOUR_NANOS).unwrap_or(0),
        addons: file.addons.unwrap_or_default(),
        namespace: kube.namespace,
        keep_context: file.keep_context,
        embed_certs: file.embed_certs,
        wait: Wait {
            components: WaitFor::ALL
                .into_iter()
                .filter(|w| verify.get(w.as_str()).copied().unwrap_or(false))
                .collect(),
        },
        cni,
        vip_by: extra.kube_vip.map_or(VipBy::Agent, |k| VipBy::KubeVip { image: k.image }),
        node_defaults: extra.node_defaults,
        extras: Extras { load_balancers, ..extra.extras },
    })
}

/// Where minikube's metallb takes addresses from. Those of another network are of no use here.
fn load_balancers(kube: &KubernetesConfig, subnet: Ipv4Net) -> Option<(Ipv4Addr, Ipv4Addr)> {
    let here = |text: &str| text.parse::<Ipv4Addr>().ok().filter(|ip| subnet.contains(ip));
    let ends = (here(&kube.first_load_balancer)?, here(&kube.last_load_balancer)?);
    (ends.0 <= ends.1).then_some(ends)
}

/// The document for `cluster`. `previous` is the file as it was: what we do not know of it stays.
pub fn render(cluster: &Cluster, previous: Option<&Map<String, Value>>) -> Map<String, Value> {
    let mut doc = defaults();
    merge(&mut doc, previous.cloned().unwrap_or_default());
    let old_nodes = doc.get("Nodes").cloned().unwrap_or_default();
    // These are ours as a whole: an entry that is gone is to be gone, not merged.
    doc.insert("Addons".into(), Value::Null);
    if let Some(extra) = doc.get_mut("Manykube").and_then(Value::as_object_mut) {
        for key in ["Nodes", "NodeDefaults", "Extras", "KubeVip"] {
            extra.shift_remove(key);
        }
    }
    merge(&mut doc, known(cluster));
    doc.insert("Nodes".into(), nodes(cluster, &old_nodes));
    doc
}

/// As [`render`], as the text of the file.
pub fn render_text(cluster: &Cluster, previous: Option<&Map<String, Value>>) -> String {
    let doc = render(cluster, previous);
    // Serialising a map of JSON values cannot fail.
    serde_json::to_string_pretty(&doc).unwrap_or_default() + "\n"
}

/// Objects are merged, all else is replaced.
pub fn merge(into: &mut Map<String, Value>, from: Map<String, Value>) {
    for (key, value) in from {
        match (into.get_mut(&key), value) {
            (Some(Value::Object(old)), Value::Object(new)) => merge(old, new),
            (_, value) => {
                into.insert(key, value);
            }
        }
    }
}

fn list<T: ToString>(items: &[T]) -> Value {
    if items.is_empty() { Value::Null } else { items.iter().map(|i| Value::from(i.to_string())).collect() }
}

fn known(c: &Cluster) -> Map<String, Value> {
    let vip = if c.is_ha() { c.vip().to_string() } else { String::new() };
    let configs: Map<String, Value> =
        c.nodes.iter().filter(|n| !n.config.is_empty()).map(|n| (n.name.clone(), json!(n.config))).collect();
    let mut ours = Map::new();
    ours.insert("SchemaVersion".into(), SCHEMA_VERSION.into());
    ours.insert("Subnet".into(), json!(c.network.subnet));
    ours.insert("PodCIDR".into(), json!(c.network.pod_cidr));
    ours.insert("Nodes".into(), configs.into());
    if !c.node_defaults.is_empty() {
        ours.insert("NodeDefaults".into(), json!(c.node_defaults));
    }
    let extras = json!(c.extras);
    if extras.as_object().is_some_and(|e| !e.is_empty()) {
        ours.insert("Extras".into(), extras);
    }
    if let VipBy::KubeVip { image } = &c.vip_by {
        ours.insert("KubeVip".into(), json!({ "Image": image }));
    }
    let verify: Map<String, Value> = WaitFor::ALL
        .into_iter()
        .map(|w| (w.as_str().into(), c.wait.components.contains(&w).into()))
        .collect();
    let mut doc = json!({
        "Name": c.name,
        "Driver": c.driver.to_string(),
        "Memory": c.memory_mib,
        "CPUs": c.cpus,
        "DiskSize": c.disk_mib,
        "APIServerPort": c.api_port,
        "KeepContext": c.keep_context,
        "EmbedCerts": c.embed_certs,
        "CertExpiration": i64::from(c.cert_expiration_hours).saturating_mul(HOUR_NANOS),
        "MultiNodeRequested": c.nodes.len() > 1,
        "VerifyComponents": verify,
        "KubernetesConfig": {
            "KubernetesVersion": c.kubernetes_version,
            "ClusterName": c.name,
            "Namespace": c.namespace,
            "APIServerHAVIP": vip,
            "APIServerNames": list(&c.api_names),
            "APIServerIPs": list(&c.api_ips),
            "DNSDomain": c.network.dns_domain,
            "ContainerRuntime": "containerd",
            "ServiceCIDR": c.network.service_cidr,
            "CNI": c.cni.as_str(),
        },
        "Addons": c.addons,
        "StaticIP": static_ip(c),
        "Manykube": ours,
    });
    if let Some((first, last)) = c.extras.load_balancers {
        doc["KubernetesConfig"]["LoadBalancerStartIP"] = json!(first);
        doc["KubernetesConfig"]["LoadBalancerEndIP"] = json!(last);
    }
    match doc {
        Value::Object(doc) => doc,
        _ => Map::new(),
    }
}

/// The first node's address, where the user chose it.
fn static_ip(c: &Cluster) -> String {
    let chosen = |n: &&Node| n.name.is_empty() && Some(n.ip) != address::node_ip(c.network.subnet, 1);
    c.nodes.iter().find(chosen).map(|n| n.ip.to_string()).unwrap_or_default()
}

/// The node list, each entry with what an earlier file said about that node besides.
fn nodes(c: &Cluster, previous: &Value) -> Value {
    let entry = |n: &Node| {
        let old = previous.as_array().and_then(|l| l.iter().find(|o| o["Name"] == n.name.as_str()));
        let mut entry = old.and_then(Value::as_object).cloned().unwrap_or_default();
        // As minikube writes them: a worker that was added later has neither.
        let later = old.is_none() && !n.control_plane && previous.as_array().is_some_and(|l| !l.is_empty());
        let bare = later || old.is_some_and(|o| o["Port"] == 0);
        let known = json!({
            "Name": n.name,
            "IP": n.ip,
            "Port": if bare { 0 } else { c.api_port },
            "KubernetesVersion": n.kubernetes_version,
            "ContainerRuntime": if bare { "" } else { "containerd" },
            "ControlPlane": n.control_plane,
            "Worker": n.worker,
        });
        if let Value::Object(known) = known {
            merge(&mut entry, known);
        }
        Value::Object(entry)
    };
    c.nodes.iter().map(entry).collect()
}

/// Every key of minikube's schema with its default.
fn defaults() -> Map<String, Value> {
    serde_json::from_str(include_str!("config_defaults.json")).unwrap_or_default()
}

#[cfg(test)]
#[path = "config_file_tests.rs"]
pub mod tests;
