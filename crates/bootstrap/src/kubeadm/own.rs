//! What a node's configuration says otherwise than ours, in kubeadm's documents.

use std::collections::BTreeMap;

use model::config_file::merge;
use model::node_config::{Component, NodeConfig, Taint};
use serde_json::{Map, Value, json};

/// Where ClusterConfiguration has the flags of a component.
const FLAGS: [(Component, &str); 4] = [
    (Component::Apiserver, "/apiServer"),
    (Component::ControllerManager, "/controllerManager"),
    (Component::Scheduler, "/scheduler"),
    (Component::Etcd, "/etcd/local"),
];
const KUBELET_ARGS: &str = "kubeletExtraArgs";
const EXTRA_ARGS: &str = "extraArgs";

/// Of what all control planes have, and this one has otherwise.
pub fn cluster(document: &mut Value, config: &NodeConfig) {
    let gates = feature_gates(config);
    for (component, place) in FLAGS {
        let Some(part) = document.pointer_mut(place) else { continue };
        if component != Component::Etcd && !gates.is_empty() {
            set_flags(part, [("feature-gates".to_owned(), gates.clone())]);
        }
        set_flags(part, config.extra_config.get(&component).cloned().unwrap_or_default());
    }
    for mut patch in patches(config, &["ClusterConfiguration"]) {
        // Flags are added to ours, by their names, however the patch spells them.
        for (_, place) in FLAGS {
            let Some(args) = patch.pointer_mut(place).and_then(|p| p.as_object_mut()?.remove(EXTRA_ARGS))
            else {
                continue;
            };
            if let Some(part) = document.pointer_mut(place) {
                set_flags(part, flags(&args));
            }
        }
        merge_into(document, patch);
    }
}

pub fn init(document: &mut Value, config: &NodeConfig) {
    document["nodeRegistration"]["taints"] = taints(&config.taints);
    let more = config.extra_config.get(&Component::Kubeadm).and_then(|flags| flags.get(IGNORE_FLAG));
    if let (Some(more), Some(list)) =
        (more, document.pointer_mut("/nodeRegistration/ignorePreflightErrors").and_then(Value::as_array_mut))
    {
        list.extend(more.split(',').map(Value::from));
    }
    for mut patch in patches(config, &["InitConfiguration"]) {
        if let Some(registration) = patch.pointer_mut("/nodeRegistration").and_then(Value::as_object_mut) {
            registration.remove(KUBELET_ARGS);
        }
        merge_into(document, patch);
    }
}

/// The only flag of kubeadm itself that means something here.
pub const IGNORE_FLAG: &str = "ignore-preflight-errors";

pub fn kubelet(document: &mut Value, config: &NodeConfig) {
    if !config.feature_gates.is_empty() {
        merge_into(document, json!({ "featureGates": config.feature_gates }));
    }
    for patch in patches(config, &["KubeletConfiguration"]) {
        merge_into(document, patch);
    }
    merge_into(document, Value::Object(config.patches.kubelet.clone()));
}

/// kube-proxy is the same on all nodes, so only what the cluster says counts.
pub fn proxy(document: &mut Value, defaults: &NodeConfig) {
    if !defaults.feature_gates.is_empty() {
        document["featureGates"] = json!(defaults.feature_gates);
    }
    for (field, text) in defaults.extra_config.get(&Component::KubeProxy).into_iter().flatten() {
        // `conntrack.min=5` is a field of the document, as in minikube: numbers are numbers.
        let value = serde_json::from_str(text).unwrap_or_else(|_| Value::from(text.as_str()));
        let nested = field.rsplit('.').fold(value, |inner, name| json!({ name: inner }));
        merge_into(document, nested);
    }
    for patch in patches(defaults, &["KubeProxyConfiguration"]) {
        merge_into(document, patch);
    }
}

/// The kubelet's flags, also those that a patch gives a node as it registers.
pub fn kubelet_flags(config: &NodeConfig, control_plane: bool) -> BTreeMap<String, String> {
    let kinds: &[&str] =
        if control_plane { &["InitConfiguration", "JoinConfiguration"] } else { &["JoinConfiguration"] };
    let patched = patches(config, kinds);
    let mut all: BTreeMap<String, String> =
        patched.iter().flat_map(|p| flags(&p["nodeRegistration"][KUBELET_ARGS])).collect();
    all.extend(config.extra_config.get(&Component::Kubelet).cloned().unwrap_or_default());
    all
}

pub fn taints(taints: &[Taint]) -> Value {
    taints
        .iter()
        .map(|t| {
            let mut taint = json!({ "key": t.key, "effect": t.effect.as_str() });
            if !t.value.is_empty() {
                taint["value"] = t.value.as_str().into();
            }
            taint
        })
        .collect()
}

fn feature_gates(config: &NodeConfig) -> String {
    config.feature_gates.iter().map(|(gate, on)| format!("{gate}={on}")).collect::<Vec<_>>().join(",")
}

/// The patches of these kinds, without what only says that.
fn patches(config: &NodeConfig, kinds: &[&str]) -> Vec<Value> {
    let kind = |patch: &&Map<String, Value>| {
        patch.get("kind").and_then(Value::as_str).is_some_and(|kind| kinds.contains(&kind))
    };
    let bare = |patch: &Map<String, Value>| {
        let mut patch = patch.clone();
        patch.retain(|key, _| key != "kind" && key != "apiVersion");
        Value::Object(patch)
    };
    config.patches.kubeadm.iter().filter(kind).map(bare).collect()
}

fn merge_into(document: &mut Value, patch: Value) {
    if let (Value::Object(document), Value::Object(patch)) = (document, patch) {
        merge(document, patch);
    }
}

/// kubeadm's lists of flags are `[{name, value}]` since v1beta4 and were mappings before.
fn flags(value: &Value) -> Vec<(String, String)> {
    let text = |v: &Value| v.as_str().map_or_else(|| v.to_string(), str::to_owned);
    match value {
        Value::Object(map) => map.iter().map(|(k, v)| (k.clone(), text(v))).collect(),
        Value::Array(list) => {
            list.iter().filter_map(|f| Some((f["name"].as_str()?.to_owned(), text(&f["value"])))).collect()
        }
        _ => Vec::new(),
    }
}

/// Of a component's part of the document. A flag that is there already is replaced.
fn set_flags(part: &mut Value, new: impl IntoIterator<Item = (String, String)>) {
    for (name, value) in new {
        let list = &mut part[EXTRA_ARGS];
        if !list.is_array() {
            *list = json!([]);
        }
        if let Some(list) = list.as_array_mut() {
            list.retain(|flag| flag["name"] != name.as_str());
            list.push(json!({ "name": name, "value": value }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> NodeConfig {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn flags_replace_ours_by_name() {
        let mut document = json!({
            "apiServer": { "extraArgs": [{ "name": "v", "value": "1" }, { "name": "a", "value": "b" }] },
            "controllerManager": {}, "scheduler": {}, "etcd": { "local": { "dataDir": "/x" } },
        });
        let config = config(
            r#"{ "ExtraConfig": { "apiserver": { "v": "2" }, "etcd": { "quota-backend-bytes": "9" } },
                 "FeatureGates": { "A": true, "B": false },
                 "Patches": { "Kubeadm": [
                   { "kind": "ClusterConfiguration", "apiVersion": "kubeadm.k8s.io/v1beta3",
                     "apiServer": { "extraArgs": { "a": "c" }, "timeoutForControlPlane": "1m" } },
                   { "kind": "InitConfiguration", "x": 1 } ] } }"#,
        );
        cluster(&mut document, &config);
        assert_eq!(
            document,
            json!({
                "apiServer": {
                    "extraArgs": [
                        { "name": "feature-gates", "value": "A=true,B=false" },
                        { "name": "v", "value": "2" },
                        { "name": "a", "value": "c" },
                    ],
                    "timeoutForControlPlane": "1m",
                },
                "controllerManager": { "extraArgs": [{ "name": "feature-gates", "value": "A=true,B=false" }] },
                "scheduler": { "extraArgs": [{ "name": "feature-gates", "value": "A=true,B=false" }] },
                "etcd": { "local": { "dataDir": "/x", "extraArgs": [{ "name": "quota-backend-bytes", "value": "9" }] } },
            })
        );
    }

    #[test]
    fn a_kubelet_hears_patches_of_its_own_kind_of_node() {
        let config = config(
            r#"{ "ExtraConfig": { "kubelet": { "max-pods": "50" } },
                 "Taints": ["gpu=yes:NoSchedule", "x:NoExecute"],
                 "Patches": { "Kubeadm": [
                   { "kind": "InitConfiguration", "nodeRegistration": { "kubeletExtraArgs": { "node-labels": "a=b" } } },
                   { "kind": "JoinConfiguration",
                     "nodeRegistration": { "kubeletExtraArgs": [{ "name": "v", "value": "4" }, { "name": "max-pods", "value": "9" }] } } ],
                   "Kubelet": { "maxPods": 7, "evictionHard": { "memory.available": "1%" } } } }"#,
        );
        let list = |control_plane| kubelet_flags(&config, control_plane).into_iter().collect::<Vec<_>>();
        let flag = |k: &str, v: &str| (k.to_owned(), v.to_owned());
        assert_eq!(list(false), [flag("max-pods", "50"), flag("v", "4")]);
        assert_eq!(list(true), [flag("max-pods", "50"), flag("node-labels", "a=b"), flag("v", "4")]);
        let mut document = json!({ "maxPods": 110, "evictionHard": { "nodefs.available": "0%" } });
        kubelet(&mut document, &config);
        assert_eq!(
            document,
            json!({ "maxPods": 7, "evictionHard": { "nodefs.available": "0%", "memory.available": "1%" } })
        );
        let mut document = json!({ "nodeRegistration": { "kubeletExtraArgs": [], "name": "x" } });
        init(&mut document, &config);
        assert_eq!(
            document["nodeRegistration"],
            json!({ "kubeletExtraArgs": [], "name": "x", "taints": [
                { "key": "gpu", "value": "yes", "effect": "NoSchedule" }, { "key": "x", "effect": "NoExecute" } ] })
        );
    }

    #[test]
    fn options_of_the_proxy_are_fields() {
        let config = config(
            r#"{ "ExtraConfig": { "kube-proxy": { "conntrack.min": "5", "metricsBindAddress": "0.0.0.0:10249" } } }"#,
        );
        let mut document = json!({ "conntrack": { "min": 0, "maxPerCore": 0 } });
        proxy(&mut document, &config);
        assert_eq!(
            document,
            json!({ "conntrack": { "min": 5, "maxPerCore": 0 }, "metricsBindAddress": "0.0.0.0:10249" })
        );
    }
}
