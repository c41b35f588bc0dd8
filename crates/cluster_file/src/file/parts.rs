//! The smaller mappings of the file.

use ipnet::Ipv4Net;
use model::cluster::ProxyMode;
use model::node_config::{FileSource, Patches, PlacedFile};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{shapes, values};

/// Ranges of addresses, and what else is fixed when the cluster is made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "a mapping")]
pub struct Networking {
    /// The private /24 that the nodes live in. Without one, a free one is chosen.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "values::node_subnet")]
    #[schemars(schema_with = "shapes::cidr")]
    pub node_subnet: Option<Ipv4Net>,
    /// Addresses of pods; every node gets a /24 of it.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "values::pod_subnet")]
    #[schemars(schema_with = "shapes::cidr")]
    pub pod_subnet: Option<Ipv4Net>,
    /// Addresses of services.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "values::service_subnet")]
    #[schemars(schema_with = "shapes::cidr")]
    pub service_subnet: Option<Ipv4Net>,
    /// The domain of the cluster's own names.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "values::domain")]
    pub dns_domain: Option<String>,
    /// How kube-proxy forwards; "none" for no kube-proxy at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shapes::proxy_mode")]
    pub kube_proxy_mode: Option<ProxyMode>,
}

impl Networking {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Networking::default()
    }
}

/// The API server, as clients see it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "a mapping")]
pub struct ApiServer {
    /// Its port; 8443 if not given.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "values::api_port")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<u16>,
    /// More DNS names and IPv4 addresses in its certificate.
    #[serde(
        default,
        rename = "extraSANs",
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "values::sans"
    )]
    pub extra_sans: Vec<String>,
}

impl ApiServer {
    pub(crate) fn is_empty(&self) -> bool {
        *self == ApiServer::default()
    }
}

/// What is written into the kubeconfig.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "a mapping")]
pub struct KubeconfigSettings {
    /// The namespace of the context.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "values::namespace")]
    pub namespace: Option<String>,
    /// Leave kubectl's current context as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_context: Option<bool>,
    /// Put certificates into the file instead of paths to them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embed_certs: Option<bool>,
}

impl KubeconfigSettings {
    pub(crate) fn is_empty(&self) -> bool {
        *self == KubeconfigSettings::default()
    }
}

/// A file in the node: its text, or a file of the host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "a mapping")]
pub struct FileToPlace {
    /// Where, in the node.
    #[serde(deserialize_with = "values::node_path")]
    pub path: String,
    /// The text itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// A file of the host (relative to this one), instead of content.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "values::word")]
    pub source: Option<String>,
    /// Permissions in octal, like "0644".
    #[serde(default, skip_serializing_if = "Option::is_none", with = "values::mode")]
    #[schemars(schema_with = "shapes::mode")]
    pub mode: Option<u32>,
}

pub const DEFAULT_MODE: u32 = 0o644;

impl FileToPlace {
    pub(crate) fn placed(&self) -> PlacedFile {
        let from = match &self.source {
            Some(source) => FileSource::Host(source.clone()),
            None => FileSource::Content(self.content.clone().unwrap_or_default()),
        };
        PlacedFile { path: self.path.clone(), mode: self.mode.unwrap_or(DEFAULT_MODE), from }
    }

    pub(crate) fn of(file: PlacedFile) -> FileToPlace {
        let (content, source) = match file.from {
            FileSource::Content(text) => (Some(text), None),
            FileSource::Host(path) => (None, Some(path)),
        };
        let mode = Some(file.mode).filter(|m| *m != DEFAULT_MODE);
        FileToPlace { path: file.path, content, source, mode }
    }
}

/// Changes of configuration files that manykube writes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "a mapping")]
pub struct PatchSet {
    /// Merged into kubeadm's document of the same kind, like ClusterConfiguration.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "values::kubeadm_patches")]
    pub kubeadm: Vec<Map<String, Value>>,
    /// Merged into the KubeletConfiguration.
    #[serde(default, skip_serializing_if = "Map::is_empty", deserialize_with = "values::object")]
    pub kubelet: Map<String, Value>,
    /// TOML, merged into containerd's configuration.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "values::texts")]
    pub containerd: Vec<String>,
}

impl PatchSet {
    pub(crate) fn is_empty(&self) -> bool {
        *self == PatchSet::default()
    }

    pub(crate) fn patches(&self) -> Patches {
        let PatchSet { kubeadm, kubelet, containerd } = self.clone();
        Patches { kubeadm, kubelet, containerd }
    }

    pub(crate) fn of(patches: Patches) -> PatchSet {
        let Patches { kubeadm, kubelet, containerd } = patches;
        PatchSet { kubeadm, kubelet, containerd }
    }
}
