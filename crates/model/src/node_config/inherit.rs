//! A node has what the cluster says, except where it says otherwise itself.

use std::collections::BTreeMap;

use super::{NodeConfig, Patches};

impl NodeConfig {
    /// Single values are replaced; mappings are merged key by key; of lists, an entry for the same
    /// thing (the same taint, the same place in the node, the same port) replaces the inherited one.
    pub fn over(&self, base: &NodeConfig) -> NodeConfig {
        let mut extra_config = base.extra_config.clone();
        for (component, flags) in &self.extra_config {
            extra_config.entry(*component).or_default().extend(flags.clone());
        }
        NodeConfig {
            cpus: self.cpus.or(base.cpus),
            memory_mib: self.memory_mib.or(base.memory_mib),
            disk_mib: self.disk_mib.or(base.disk_mib),
            container_runtime: self.container_runtime.clone().or_else(|| base.container_runtime.clone()),
            base_image: self.base_image.clone().or_else(|| base.base_image.clone()),
            extra_config,
            feature_gates: maps(&base.feature_gates, &self.feature_gates),
            labels: maps(&base.labels, &self.labels),
            taints: lists(&base.taints, &self.taints, |a, b| (&a.key, a.effect) == (&b.key, b.effect)),
            mounts: lists(&base.mounts, &self.mounts, |a, b| a.node == b.node),
            ports: lists(&base.ports, &self.ports, |a, b| a.clashes(b)),
            binaries: maps(&base.binaries, &self.binaries),
            files: lists(&base.files, &self.files, |a, b| a.path == b.path),
            patches: patches(&base.patches, &self.patches),
        }
    }

    /// Without what only control planes run: a worker inherits the rest.
    pub fn for_worker(&self) -> NodeConfig {
        let mut config = self.clone();
        config.extra_config.retain(|component, _| component.on_workers());
        config.binaries.retain(|binary, _| binary.on_workers());
        config
    }
}

fn maps<K: Ord + Clone, V: Clone>(base: &BTreeMap<K, V>, own: &BTreeMap<K, V>) -> BTreeMap<K, V> {
    base.iter().chain(own).map(|(k, v)| (k.clone(), v.clone())).collect()
}

fn lists<T: Clone>(base: &[T], own: &[T], same: impl Fn(&T, &T) -> bool) -> Vec<T> {
    let kept = base.iter().filter(|b| !own.iter().any(|o| same(o, b)));
    kept.chain(own).cloned().collect()
}

/// All apply, the node's last, so that it has the last word.
fn patches(base: &Patches, own: &Patches) -> Patches {
    let mut kubelet = base.kubelet.clone();
    crate::config_file::merge(&mut kubelet, own.kubelet.clone());
    Patches {
        kubeadm: base.kubeadm.iter().chain(&own.kubeadm).cloned().collect(),
        kubelet,
        containerd: base.containerd.iter().chain(&own.containerd).cloned().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node_config::{Binary, Component};

    fn config(labels: &[(&str, &str)], taints: &[&str], mounts: &[&str]) -> NodeConfig {
        NodeConfig {
            labels: labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
            taints: taints.iter().map(|t| t.parse().unwrap()).collect(),
            mounts: mounts.iter().map(|m| m.parse().unwrap()).collect(),
            ..NodeConfig::default()
        }
    }

    #[test]
    fn a_node_overrides_what_it_names() {
        let mut base =
            config(&[("a", "1"), ("b", "1")], &["k=1:NoSchedule", "l:NoExecute"], &["/x:/a", "/y:/b"]);
        base.cpus = Some(2);
        base.memory_mib = Some(4096);
        let mut own = config(&[("b", "2")], &["k=2:NoSchedule", "k:NoExecute"], &["/z:/b:ro"]);
        own.cpus = Some(4);
        let got = own.over(&base);
        let want = config(
            &[("a", "1"), ("b", "2")],
            &["l:NoExecute", "k=2:NoSchedule", "k:NoExecute"],
            &["/x:/a", "/z:/b:ro"],
        );
        assert_eq!(got, NodeConfig { cpus: Some(4), memory_mib: Some(4096), ..want });
        assert_eq!(NodeConfig::default().over(&base), base);
        assert_eq!(base.over(&NodeConfig::default()), base);
    }

    #[test]
    fn flags_merge_by_component() {
        let with = |c: Component, flag: &str, value: &str| NodeConfig {
            extra_config: [(c, [(flag.to_owned(), value.to_owned())].into())].into(),
            ..NodeConfig::default()
        };
        let base = with(Component::Kubelet, "v", "1").over(&with(Component::Apiserver, "v", "1"));
        let got = with(Component::Kubelet, "max-pods", "9").over(&base);
        assert_eq!(got.extra_config[&Component::Kubelet].len(), 2);
        let worker = got.for_worker();
        assert!(!worker.extra_config.contains_key(&Component::Apiserver));
        let mut swapped = NodeConfig::default();
        swapped.binaries.insert(Binary::KubeApiserver, "/x".into());
        assert!(swapped.for_worker().is_empty());
    }
}
