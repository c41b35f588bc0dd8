//! What one node may have of its own: size, labels, taints, mounts, … The cluster has one of these as
//! well, which its nodes inherit; a node overrides what it names.

pub mod change;
mod component;
mod inherit;
mod label;
mod mount;
mod port;
mod taint;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use change::{Change, Setup, Takes};
pub use component::{Binary, Component, check_flag};
pub use label::{check_feature_gate, check_label_key, check_label_value};
pub use mount::{Mount, check_node_path};
pub use port::{Port, Protocol};
pub use taint::{Effect, Taint};

/// Flags of Kubernetes' components: component → flag → value.
pub type ExtraConfig = BTreeMap<Component, BTreeMap<String, String>>;

/// `None` and empty mean: as the cluster says, and as the defaults say where it says nothing either.
/// The keys are those of the profile's file, under `Manykube.Nodes`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NodeConfig {
    #[serde(rename = "CPUs", skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u32>,
    #[serde(rename = "Memory", skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<u32>,
    #[serde(rename = "DiskSize", skip_serializing_if = "Option::is_none")]
    pub disk_mib: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container_runtime: Option<String>,
    /// Another node image than the one of the version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_image: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub extra_config: ExtraConfig,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub feature_gates: BTreeMap<String, bool>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<Mount>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<Port>,
    /// Programs of the host that take the place of those in the image.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub binaries: BTreeMap<Binary, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<PlacedFile>,
    #[serde(skip_serializing_if = "Patches::is_empty")]
    pub patches: Patches,
}

impl NodeConfig {
    /// The size of a disk of its own. minikube's default, which every profile and exported file names, is the
    /// host's disk without a limit.
    pub fn own_disk_mib(&self) -> Option<u32> {
        self.disk_mib.filter(|mib| *mib != crate::resources::DEFAULT_DISK_MIB)
    }
}

/// A file to be placed in the node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct PlacedFile {
    /// In the node.
    pub path: String,
    pub mode: u32,
    pub from: FileSource,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileSource {
    /// The text itself.
    Content(String),
    /// A file of the host, read when the node is made.
    Host(String),
}

/// Changes of configuration files that manykube writes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Patches {
    /// Merged into kubeadm's document of the same `kind`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kubeadm: Vec<Map<String, Value>>,
    /// Merged into the KubeletConfiguration.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub kubelet: Map<String, Value>,
    /// TOML, merged into containerd's configuration one after the other.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub containerd: Vec<String>,
}

impl Patches {
    pub fn is_empty(&self) -> bool {
        *self == Patches::default()
    }
}

impl NodeConfig {
    pub fn is_empty(&self) -> bool {
        *self == NodeConfig::default()
    }
}

/// Serde through `FromStr` and `Display`: one spelling in files, in flags and in messages.
macro_rules! as_text {
    ($type:ty) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
use as_text;
