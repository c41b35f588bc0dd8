//! What a node is to have no more: `--labels tier-`, as kubectl spells it.

use std::collections::BTreeMap;

use model::NodeConfig;
use model::node_config::{Binary, Component, Effect, Port, Protocol, Taint, check_label_key};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Remove {
    pub labels: Vec<String>,
    pub taints: Vec<TaintName>,
    pub extra_config: Vec<(Component, String)>,
    pub feature_gates: Vec<String>,
    /// Paths in the node.
    pub mounts: Vec<String>,
    pub ports: Vec<PortName>,
    pub binaries: Vec<Binary>,
}

/// `key`, `key:Effect` or `key=value:Effect`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaintName {
    key: String,
    effect: Option<Effect>,
    value: Option<String>,
}

impl TaintName {
    pub fn parse(text: &str) -> Result<TaintName, String> {
        if !text.contains(':') {
            check_label_key(text)?;
            return Ok(TaintName { key: text.to_owned(), effect: None, value: None });
        }
        let Taint { key, value, effect } = text.parse()?;
        Ok(TaintName { key, effect: Some(effect), value: Some(value).filter(|v| !v.is_empty()) })
    }

    fn means(&self, taint: &Taint) -> bool {
        self.key == taint.key
            && self.effect.is_none_or(|e| e == taint.effect)
            && self.value.as_ref().is_none_or(|v| *v == taint.value)
    }
}

/// `8080` or `53/udp`: a port of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortName {
    host: u16,
    protocol: Protocol,
}

impl PortName {
    pub fn parse(text: &str) -> Result<PortName, String> {
        let (port, protocol) = match text.split_once('/') {
            Some((port, protocol)) => (port, protocol.parse()?),
            None => (text, Protocol::Tcp),
        };
        let host =
            port.parse().map_err(|_| format!("{text:?} is not a port of the host, like 8080 or 53/udp"))?;
        Ok(PortName { host, protocol })
    }

    fn means(&self, port: &Port) -> bool {
        (self.host, self.protocol) == (port.host, port.protocol)
    }
}

impl Remove {
    /// A word that was given, for a message.
    pub fn first(&self) -> Option<String> {
        let labels = self.labels.iter().map(|k| format!("--labels={k}"));
        let taints = self.taints.iter().map(|t| format!("--taints={}", t.key));
        let flags = self.extra_config.iter().map(|(c, flag)| format!("--extra-config={c}.{flag}"));
        let gates = self.feature_gates.iter().map(|g| format!("--feature-gates={g}"));
        let mounts = self.mounts.iter().map(|m| format!("--mount={m}"));
        let ports = self.ports.iter().map(|p| format!("--ports={}", p.host));
        // An empty path is no word of removal where there is nothing to remove: it says nothing.
        labels.chain(taints).chain(flags).chain(gates).chain(mounts).chain(ports).next()
    }

    /// What is left of a node's own configuration. What it does not have cannot be removed, nor what it
    /// inherits: a node overrides, it does not take away.
    pub fn from(&self, own: &NodeConfig, inherited: &NodeConfig) -> Result<NodeConfig, String> {
        let mut left = own.clone();
        for key in &self.labels {
            take(&mut left.labels, &inherited.labels, key, &format!("label {key}"))?;
        }
        for name in &self.feature_gates {
            take(&mut left.feature_gates, &inherited.feature_gates, name, &format!("feature gate {name}"))?;
        }
        for binary in &self.binaries {
            // Spelled as an empty path, which asks for the image's program: most nodes have that anyway.
            if left.binaries.remove(binary).is_none() && inherited.binaries.contains_key(binary) {
                return Err(missing(binary.as_str(), true));
            }
        }
        for (component, flag) in &self.extra_config {
            let none = BTreeMap::new();
            let base = inherited.extra_config.get(component).unwrap_or(&none);
            let flags = left.extra_config.entry(*component).or_default();
            take(flags, base, flag, &format!("flag {component}.{flag}"))?;
        }
        left.extra_config.retain(|_, flags| !flags.is_empty());
        for name in &self.taints {
            drop_from(&mut left.taints, &inherited.taints, &format!("taint {}", name.key), |t| {
                name.means(t)
            })?;
        }
        for path in &self.mounts {
            let same = |node: &str| node.trim_end_matches('/') == path;
            drop_from(&mut left.mounts, &inherited.mounts, &format!("mount at {path}"), |m| same(&m.node))?;
        }
        for name in &self.ports {
            drop_from(&mut left.ports, &inherited.ports, &format!("port {}", name.host), |p| name.means(p))?;
        }
        Ok(left)
    }
}

fn missing(what: &str, inherited: bool) -> String {
    if inherited {
        format!("has the {what} from its cluster: take it away from all nodes with a file (start -f)")
    } else {
        format!("has no {what}")
    }
}

fn take<K: Ord, V>(
    own: &mut BTreeMap<K, V>,
    inherited: &BTreeMap<K, V>,
    key: &K,
    what: &str,
) -> Result<(), String> {
    own.remove(key).map(drop).ok_or_else(|| missing(what, inherited.contains_key(key)))
}

fn drop_from<T>(
    own: &mut Vec<T>,
    inherited: &[T],
    what: &str,
    means: impl Fn(&T) -> bool,
) -> Result<(), String> {
    let before = own.len();
    own.retain(|entry| !means(entry));
    if own.len() < before { Ok(()) } else { Err(missing(what, inherited.iter().any(means))) }
}
