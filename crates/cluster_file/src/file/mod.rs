//! The cluster file as it is written: `apiVersion: manykube.dev/v1`, `kind: Cluster`. What a file does
//! not say is `None` or empty here; `resolve` fills it in.

mod extra_config;
mod parts;
mod settings;
pub(crate) mod shapes;
pub(crate) mod values;
mod wait;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use extra_config::ExtraConfigValue;
pub use parts::{ApiServer, FileToPlace, KubeconfigSettings, Networking, PatchSet};
use settings::with_node_settings;
pub use wait::WaitList;

pub const API_VERSION: &str = "manykube.dev/v1";
pub const KIND: &str = "Cluster";

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ApiVersion {
    #[default]
    #[serde(rename = "manykube.dev/v1")]
    V1,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Kind {
    #[default]
    Cluster,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    ControlPlane,
    #[default]
    Worker,
}

impl Role {
    fn is_default(&self) -> bool {
        *self == Role::default()
    }
}

with_node_settings! {
    /// A Kubernetes cluster and all its nodes.
    pub struct ClusterFile {
        pub api_version: ApiVersion,
        pub kind: Kind,
        /// The profile: also the kubectl context, and what the nodes' names begin with.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "values::cluster_name")]
        #[schemars(schema_with = "shapes::cluster_name")]
        pub name: Option<String>,
        /// What nodes are made of.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "values::driver")]
        pub driver: Option<String>,
        /// Groups of nodes. Without any, the cluster is one control plane.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub nodes: Vec<NodeGroup>,
        #[serde(default, skip_serializing_if = "Networking::is_empty")]
        pub networking: Networking,
        /// The pod network: "auto" for manykube's own, "none", or the path or URL of a manifest.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "values::cni")]
        pub cni: Option<String>,
        #[serde(default, skip_serializing_if = "ApiServer::is_empty")]
        pub api_server: ApiServer,
        /// How long certificates are valid, like 26280h.
        #[serde(default, skip_serializing_if = "Option::is_none", with = "values::hours")]
        #[schemars(schema_with = "shapes::hours")]
        pub cert_expiration: Option<u32>,
        #[serde(default, skip_serializing_if = "KubeconfigSettings::is_empty")]
        pub kubeconfig: KubeconfigSettings,
        /// What a start waits for: "all", "none", or a list.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub wait: Option<WaitList>,
        /// Addons to switch on or off.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "values::addons")]
        pub addons: Option<BTreeMap<String, bool>>,
        /// Manifests to apply: paths (relative to this file) or URLs.
        #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "values::texts")]
        pub manifests: Vec<String>,
        /// Images to load into all nodes: names, or paths of archives.
        #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "values::texts")]
        pub images: Vec<String>,
    }
}

with_node_settings! {
    /// One node, or several alike. What it names overrides what the cluster says.
    pub struct NodeGroup {
        /// How many; 1 if not given.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "values::count")]
        #[schemars(range(min = 1, max = 252))]
        pub count: Option<u32>,
        /// The name of the one node. Without names, nodes are called as minikube does: m02, m03, …
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "values::node_name")]
        #[schemars(schema_with = "shapes::node_name")]
        pub name: Option<String>,
        /// Names of several: "gpu-" gives gpu-1, gpu-2, …
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "values::name_prefix")]
        #[schemars(schema_with = "shapes::name_prefix")]
        pub name_prefix: Option<String>,
        /// control-plane or worker.
        #[serde(default, skip_serializing_if = "Role::is_default")]
        pub role: Role,
    }
}
