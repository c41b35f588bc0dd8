//! What changes when a node is to be another one, and what that takes.

use serde::{Deserialize, Serialize};

use super::{NodeConfig, Taint};
use crate::{Cluster, Node};

/// All that a node was made with, or is to be made with: its own configuration and what it inherits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Setup {
    pub kubernetes_version: String,
    pub config: NodeConfig,
}

/// What it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Takes {
    /// Nothing: it happens while everything runs.
    Live,
    /// The node restarts.
    Restart,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The key of the cluster file.
    pub what: &'static str,
    pub from: String,
    pub to: String,
    pub takes: Takes,
}

impl Change {
    /// `None` when both are the same.
    pub fn between<T: PartialEq>(
        what: &'static str,
        takes: Takes,
        (old, new): (&T, &T),
        show: impl Fn(&T) -> String,
    ) -> Option<Change> {
        (old != new).then(|| Change { what, from: show(old), to: show(new), takes })
    }
}

/// Anything that serde can show, on one line.
pub fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

impl Setup {
    pub fn of(cluster: &Cluster, node: &Node) -> Setup {
        Setup { kubernetes_version: node.kubernetes_version.clone(), config: cluster.config_of(node) }
    }

    /// The table of what takes what.
    pub fn changes(&self, new: &Setup) -> Vec<Change> {
        use Takes::{Live, Restart};
        let (a, b) = (&self.config, &new.config);
        let version = (&self.kubernetes_version, &new.kubernetes_version);
        let mib = |m: &Option<u32>| m.map_or("none".to_owned(), |m| format!("{m}Mi"));
        [
            Change::between("cpus", Live, (&a.cpus, &b.cpus), |n| n.unwrap_or(0).to_string()),
            Change::between("memory", Live, (&a.memory_mib, &b.memory_mib), mib),
            Change::between("labels", Live, (&a.labels, &b.labels), json),
            Change::between("taints", Live, (&sorted(&a.taints), &sorted(&b.taints)), json),
            Change::between("kubernetesVersion", Restart, version, String::clone),
            Change::between("extraConfig", Restart, (&a.extra_config, &b.extra_config), json),
            Change::between("featureGates", Restart, (&a.feature_gates, &b.feature_gates), json),
            Change::between("mounts", Restart, (&a.mounts, &b.mounts), json),
            Change::between("ports", Restart, (&a.ports, &b.ports), json),
            Change::between("binaries", Restart, (&a.binaries, &b.binaries), json),
            Change::between("files", Restart, (&a.files, &b.files), json),
            Change::between("patches", Restart, (&a.patches, &b.patches), json),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// Labels and taints are of the API, not of the machine.
    pub fn same_in_api(&self, other: &Setup) -> bool {
        self.config.labels == other.config.labels
            && sorted(&self.config.taints) == sorted(&other.config.taints)
    }

    pub fn same_size(&self, other: &Setup) -> bool {
        (self.config.cpus, self.config.memory_mib) == (other.config.cpus, other.config.memory_mib)
    }
}

/// Later ones of the same key replace earlier ones, so their order is no difference.
fn sorted(taints: &[Taint]) -> Vec<Taint> {
    let mut taints = taints.to_vec();
    taints.sort();
    taints
}
