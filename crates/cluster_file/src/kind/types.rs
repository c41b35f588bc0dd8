//! The v1alpha4 types, as far as kind itself has them. Unknown keys are errors there too.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "a mapping")]
pub struct KindFile {
    #[serde(rename = "kind")]
    pub _kind: String,
    #[serde(rename = "apiVersion")]
    pub _api_version: String,
    #[serde(default)]
    pub name: Option<String>,
    #[serde(default)]
    pub nodes: Vec<KindNode>,
    #[serde(default)]
    pub networking: KindNetworking,
    #[serde(default)]
    pub feature_gates: BTreeMap<String, bool>,
    #[serde(default)]
    pub runtime_config: BTreeMap<String, String>,
    #[serde(default)]
    pub kubeadm_config_patches: Vec<String>,
    #[serde(default, rename = "kubeadmConfigPatchesJSON6902")]
    pub kubeadm_json: Option<Value>,
    #[serde(default)]
    pub containerd_config_patches: Vec<String>,
    #[serde(default, rename = "containerdConfigPatchesJSON6902")]
    pub containerd_json: Option<Value>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KindRole {
    #[default]
    ControlPlane,
    Worker,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "a mapping")]
pub struct KindNode {
    #[serde(default)]
    pub role: KindRole,
    #[serde(default)]
    pub image: Option<String>,
    #[serde(default, deserialize_with = "crate::file::values::labels")]
    pub labels: BTreeMap<String, String>,
    #[serde(default)]
    pub extra_mounts: Vec<KindMount>,
    #[serde(default)]
    pub extra_port_mappings: Vec<KindPort>,
    #[serde(default)]
    pub kubeadm_config_patches: Vec<String>,
    #[serde(default, rename = "kubeadmConfigPatchesJSON6902")]
    pub kubeadm_json: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "a mapping")]
pub struct KindMount {
    pub host_path: String,
    pub container_path: String,
    #[serde(default)]
    pub read_only: bool,
    #[serde(default)]
    pub selinux_relabel: bool,
    #[serde(default)]
    pub propagation: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "a mapping")]
pub struct KindPort {
    pub container_port: u16,
    #[serde(default)]
    pub host_port: Option<i64>,
    #[serde(default)]
    pub listen_address: Option<String>,
    #[serde(default)]
    pub protocol: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "a mapping")]
pub struct KindNetworking {
    #[serde(default)]
    pub ip_family: Option<String>,
    #[serde(default)]
    pub api_server_port: Option<i64>,
    #[serde(default)]
    pub api_server_address: Option<String>,
    #[serde(default)]
    pub pod_subnet: Option<String>,
    #[serde(default)]
    pub service_subnet: Option<String>,
    #[serde(default, rename = "disableDefaultCNI")]
    pub disable_default_cni: bool,
    #[serde(default)]
    pub kube_proxy_mode: Option<String>,
    #[serde(default)]
    pub dns_search: Option<Vec<String>>,
}
