//! What the cluster and every group of nodes can both say. One list, so that the two never differ.
//! (serde's `flatten` would do it as well, but forgets places and lets unknown keys pass.)

macro_rules! with_node_settings {
    ($(#[$meta:meta])* pub struct $name:ident { $($own:tt)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "a mapping")]
        pub struct $name {
            $($own)*
            /// The Kubernetes version: v1.2.3, 1.2 (its newest patch), stable, latest. Workers may be up
            /// to three minor versions older than the cluster.
            #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::file::values::version")]
            #[schemars(schema_with = "crate::file::shapes::version")]
            pub kubernetes_version: Option<String>,
            /// The container runtime.
            #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::file::values::runtime")]
            #[schemars(schema_with = "crate::file::shapes::runtime")]
            pub container_runtime: Option<String>,
            /// CPUs of a node.
            #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::file::values::cpus")]
            #[schemars(range(min = 1, max = 1024))]
            pub cpus: Option<u32>,
            /// Memory of a node: 4096 (MiB), 4g, 4Gi.
            #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::file::values::memory")]
            #[schemars(schema_with = "crate::file::shapes::size")]
            pub memory: Option<u32>,
            /// A disk of the node's own, for all but images: 4000 (MiB), 4g, 4Gi. 20000 (MiB) is the host's disk.
            #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::file::values::disk")]
            #[schemars(schema_with = "crate::file::shapes::size")]
            pub disk_size: Option<u32>,
            /// Another node image than the one of the version.
            #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::file::values::word")]
            pub base_image: Option<String>,
            /// Labels of the Node objects.
            #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty", deserialize_with = "crate::file::values::labels")]
            #[schemars(schema_with = "crate::file::shapes::labels")]
            pub labels: std::collections::BTreeMap<String, String>,
            /// Taints: KEY[=VALUE]:EFFECT.
            #[serde(default, skip_serializing_if = "Vec::is_empty")]
            #[schemars(schema_with = "crate::file::shapes::taints")]
            pub taints: Vec<model::node_config::Taint>,
            /// Flags of components: {kubelet: {max-pods: 50}}, or a list of kubelet.max-pods=50.
            #[serde(default, skip_serializing_if = "crate::file::ExtraConfigValue::is_empty")]
            pub extra_config: crate::file::ExtraConfigValue,
            /// Feature gates of all components: name → true or false.
            #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty", deserialize_with = "crate::file::values::feature_gates")]
            pub feature_gates: std::collections::BTreeMap<String, bool>,
            /// Directories or files of the host: HOST:NODE[:ro].
            #[serde(default, skip_serializing_if = "Vec::is_empty")]
            #[schemars(schema_with = "crate::file::shapes::mounts")]
            pub mounts: Vec<model::node_config::Mount>,
            /// Ports of the host that lead to the node: [ADDRESS:]HOST:NODE[/PROTOCOL].
            #[serde(default, skip_serializing_if = "Vec::is_empty")]
            #[schemars(schema_with = "crate::file::shapes::ports")]
            pub ports: Vec<model::node_config::Port>,
            /// Programs of the host that take the place of those in the image: kubelet: PATH.
            #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty", deserialize_with = "crate::file::values::binaries")]
            #[schemars(schema_with = "crate::file::shapes::binaries")]
            pub binaries: std::collections::BTreeMap<model::node_config::Binary, String>,
            /// Files to place in the node.
            #[serde(default, skip_serializing_if = "Vec::is_empty")]
            pub files: Vec<crate::file::FileToPlace>,
            /// Changes of configuration files that manykube writes.
            #[serde(default, skip_serializing_if = "crate::file::PatchSet::is_empty")]
            pub patches: crate::file::PatchSet,
        }

        impl $name {
            /// What it says about nodes.
            pub fn config(&self) -> model::NodeConfig {
                model::NodeConfig {
                    cpus: self.cpus,
                    memory_mib: self.memory,
                    disk_mib: self.disk_size,
                    container_runtime: self.container_runtime.clone(),
                    base_image: self.base_image.clone(),
                    extra_config: self.extra_config.0.clone(),
                    feature_gates: self.feature_gates.clone(),
                    labels: self.labels.clone(),
                    taints: self.taints.clone(),
                    mounts: self.mounts.clone(),
                    ports: self.ports.clone(),
                    binaries: self.binaries.clone(),
                    files: self.files.iter().map(crate::file::FileToPlace::placed).collect(),
                    patches: self.patches.patches(),
                }
            }

            /// The opposite of [`Self::config`].
            pub fn set_config(&mut self, config: &model::NodeConfig) {
                let config = config.clone();
                self.cpus = config.cpus;
                self.memory = config.memory_mib;
                self.disk_size = config.disk_mib;
                self.container_runtime = config.container_runtime;
                self.base_image = config.base_image;
                self.extra_config = crate::file::ExtraConfigValue(config.extra_config);
                self.feature_gates = config.feature_gates;
                self.labels = config.labels;
                self.taints = config.taints;
                self.mounts = config.mounts;
                self.ports = config.ports;
                self.binaries = config.binaries;
                self.files = config.files.into_iter().map(crate::file::FileToPlace::of).collect();
                self.patches = crate::file::PatchSet::of(config.patches);
            }
        }
    };
}
pub(crate) use with_node_settings;
