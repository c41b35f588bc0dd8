//! Changes to a kubeconfig document. Pure.

use model::status::Kubeconfig;
use serde_json::{Map, Value, json};

use super::ours::{Ours, PROVIDER};

/// What a cluster adds to a kubeconfig; cluster, user and context all bear the profile's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub name: String,
    /// `https://192.168.49.2:8443`
    pub server: String,
    pub namespace: String,
    pub credentials: Credentials,
    /// Whose it is, when it names no files.
    pub home: String,
    /// RFC 1123.
    pub now: String,
    pub version: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credentials {
    Files {
        ca: String,
        cert: String,
        key: String,
    },
    /// Base64 of the files.
    Embedded {
        ca: String,
        cert: String,
        key: String,
    },
}

impl Entry {
    fn cluster(&self) -> Value {
        let (key, ca) = match &self.credentials {
            Credentials::Files { ca, .. } => ("certificate-authority", ca),
            Credentials::Embedded { ca, .. } => ("certificate-authority-data", ca),
        };
        json!({ key: ca, "extensions": self.extensions("cluster_info"), "server": self.server })
    }

    fn user(&self) -> Value {
        match &self.credentials {
            Credentials::Files { cert, key, .. } => json!({ "client-certificate": cert, "client-key": key }),
            Credentials::Embedded { cert, key, .. } => {
                json!({ "client-certificate-data": cert, "client-key-data": key })
            }
        }
    }

    fn context(&self) -> Value {
        json!({
            "cluster": self.name,
            "extensions": self.extensions("context_info"),
            "namespace": self.namespace,
            "user": self.name,
        })
    }

    fn extensions(&self, name: &str) -> Value {
        json!([{
            "extension": {
                "home": self.home,
                "last-update": self.now,
                "provider": PROVIDER,
                "version": self.version,
            },
            "name": name,
        }])
    }
}

/// Adds or replaces the entry; makes it the current one if asked to.
pub fn set(doc: &mut Value, entry: &Entry, current: bool) {
    if !doc.is_object() {
        *doc = Value::Object(Map::new());
    }
    let Some(map) = doc.as_object_mut() else { return };
    // A new document gets kubectl's order of keys.
    map.entry("apiVersion").or_insert_with(|| "v1".into());
    put(map, "clusters", "cluster", &entry.name, entry.cluster());
    put(map, "contexts", "context", &entry.name, entry.context());
    if current {
        map.insert("current-context".into(), entry.name.clone().into());
    } else {
        map.entry("current-context").or_insert_with(|| "".into());
    }
    map.entry("kind").or_insert_with(|| "Config".into());
    put(map, "users", "user", &entry.name, entry.user());
}

/// Whether `set` would change nothing but time stamps.
pub fn is_set(doc: &Value, entry: &Entry, current: bool) -> bool {
    let mut wanted = doc.clone();
    set(&mut wanted, entry, current);
    without_extensions(&mut wanted, &entry.name);
    let mut there = doc.clone();
    without_extensions(&mut there, &entry.name);
    wanted == there
}

fn without_extensions(doc: &mut Value, name: &str) {
    for (list, key) in [("clusters", "cluster"), ("contexts", "context")] {
        let items = doc.get_mut(list).and_then(Value::as_array_mut);
        let item = items.and_then(|items| items.iter_mut().find(|i| i["name"] == name));
        if let Some(body) = item.and_then(|i| i.get_mut(key)).and_then(Value::as_object_mut) {
            body.remove("extensions");
        }
    }
}

/// Makes the named context the current one.
pub fn set_current(doc: &mut Value, name: &str) {
    if let Some(map) = doc.as_object_mut() {
        map.insert("current-context".into(), name.into());
    }
}

/// Puts `body` where an entry of that name is, else at the end.
fn put(doc: &mut Map<String, Value>, list: &str, key: &str, name: &str, body: Value) {
    let slot = doc.entry(list).or_insert(Value::Null);
    if !slot.is_array() {
        *slot = Value::Array(Vec::new());
    }
    let Some(items) = slot.as_array_mut() else { return };
    match items.iter_mut().find(|i| i["name"] == name) {
        Some(item) => item[key] = body,
        None if key < "name" => items.push(json!({ key: body, "name": name })),
        None => items.push(json!({ "name": name, key: body })),
    }
}

/// Removes cluster, user and context of that name, as far as they are ours; whether there was anything to remove.
pub fn remove(doc: &mut Value, name: &str, ours: &Ours) -> bool {
    let owned = ours.look(doc, name);
    let Some(map) = doc.as_object_mut() else { return false };
    let lists = [("clusters", owned.cluster), ("contexts", owned.context), ("users", owned.user)];
    for list in lists.iter().filter(|(_, own)| *own == Some(true)).map(|(list, _)| *list) {
        if let Some(items) = map.get_mut(list).and_then(Value::as_array_mut) {
            items.retain(|i| i["name"] != name);
        }
    }
    if owned.context == Some(true) && map.get("current-context").is_some_and(|c| c == name) {
        map.insert("current-context".into(), "".into());
    }
    lists.iter().any(|(_, own)| *own == Some(true))
}

pub fn current_context(doc: &Value) -> &str {
    doc["current-context"].as_str().unwrap_or_default()
}

pub(super) fn find<'a>(doc: &'a Value, list: &str, name: &str) -> Option<&'a Value> {
    doc[list].as_array()?.iter().find(|i| i["name"] == name)
}

pub fn server<'a>(doc: &'a Value, name: &str) -> Option<&'a str> {
    find(doc, "clusters", name)?["cluster"]["server"].as_str()
}

/// Whether the kubeconfig points to `server` under this name.
pub fn state(doc: &Value, name: &str, server: &str) -> Kubeconfig {
    let same = self::server(doc, name).is_some_and(|s| s.trim_end_matches('/') == server);
    if same && find(doc, "contexts", name).is_some() {
        Kubeconfig::Configured
    } else {
        Kubeconfig::Misconfigured
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::kubeconfig::yaml;

    fn entry(name: &str) -> Entry {
        Entry {
            name: name.into(),
            server: "https://192.168.49.2:8443".into(),
            namespace: "default".into(),
            credentials: Credentials::Files {
                ca: "/h/ca.crt".into(),
                cert: "/h/c.crt".into(),
                key: "/h/c.key".into(),
            },
            home: "/h".into(),
            now: "Sun, 15 Nov 2026 10:00:00 UTC".into(),
            version: "v0.1.0".into(),
        }
    }

    fn ours() -> Ours {
        Ours { homes: vec!["/h".into()], certificates: Vec::new() }
    }

    const OTHERS: &str = "\
apiVersion: v1
clusters:
- cluster:
    insecure-skip-tls-verify: true
    server: https://prod.example:6443
  name: prod
contexts:
- context:
    cluster: prod
    user: admin
  name: prod
current-context: prod
kind: Config
preferences: {}
users:
- name: admin
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      args:
      - get-token
      command: aws
      env: null
";

    #[test]
    fn a_new_file() {
        let mut doc = yaml::parse("").unwrap();
        set(&mut doc, &entry("demo"), true);
        assert_eq!(
            yaml::render(&doc).unwrap(),
            "\
apiVersion: v1
clusters:
- cluster:
    certificate-authority: /h/ca.crt
    extensions:
    - extension:
        home: /h
        last-update: Sun, 15 Nov 2026 10:00:00 UTC
        provider: manykube
        version: v0.1.0
      name: cluster_info
    server: https://192.168.49.2:8443
  name: demo
contexts:
- context:
    cluster: demo
    extensions:
    - extension:
        home: /h
        last-update: Sun, 15 Nov 2026 10:00:00 UTC
        provider: manykube
        version: v0.1.0
      name: context_info
    namespace: default
    user: demo
  name: demo
current-context: demo
kind: Config
users:
- name: demo
  user:
    client-certificate: /h/c.crt
    client-key: /h/c.key
"
        );
        assert_eq!(state(&doc, "demo", "https://192.168.49.2:8443"), Kubeconfig::Configured);
        assert_eq!(state(&doc, "demo", "https://192.168.49.3:8443"), Kubeconfig::Misconfigured);
        assert_eq!(state(&doc, "other", "https://192.168.49.2:8443"), Kubeconfig::Misconfigured);
    }

    #[test]
    fn what_others_wrote_is_kept() {
        let mut doc = yaml::parse(OTHERS).unwrap();
        set(&mut doc, &entry("demo"), false);
        assert_eq!(current_context(&doc), "prod");
        assert!(remove(&mut doc, "demo", &ours()));
        assert!(!remove(&mut doc, "demo", &ours()));
        assert_eq!(yaml::render(&doc).unwrap(), OTHERS);
    }

    #[test]
    fn removing_the_current_one_leaves_none() {
        let mut doc = yaml::parse(OTHERS).unwrap();
        set(&mut doc, &entry("demo"), true);
        set(&mut doc, &entry("demo"), true);
        assert_eq!(doc["clusters"].as_array().unwrap().len(), 2);
        remove(&mut doc, "demo", &ours());
        assert_eq!(current_context(&doc), "");
    }

    #[test]
    fn only_real_changes_count() {
        let mut doc = yaml::parse(OTHERS).unwrap();
        assert!(!is_set(&doc, &entry("demo"), false));
        set(&mut doc, &entry("demo"), true);
        let later = Entry { now: "later".into(), version: "v9".into(), ..entry("demo") };
        assert!(is_set(&doc, &later, true) && is_set(&doc, &later, false));
        assert!(!is_set(&doc, &Entry { namespace: "dev".into(), ..later.clone() }, true));
        assert!(!is_set(&doc, &Entry { server: "https://10.0.0.1:8443".into(), ..later.clone() }, true));
        set_current(&mut doc, "prod");
        assert!(!is_set(&doc, &later, true));
    }

    #[test]
    fn embedded_credentials_replace_files() {
        let mut doc = yaml::parse("clusters: null\nusers:\n").unwrap();
        set(&mut doc, &entry("demo"), true);
        let mut embedded = entry("demo");
        embedded.credentials =
            Credentials::Embedded { ca: "Y2E=".into(), cert: "Yw==".into(), key: "aw==".into() };
        set(&mut doc, &embedded, true);
        assert_eq!(doc["clusters"][0]["cluster"]["certificate-authority-data"], "Y2E=");
        assert_eq!(doc["clusters"][0]["cluster"].get("certificate-authority"), None);
        assert_eq!(doc["users"][0]["user"]["client-key-data"], "aw==");
    }

    proptest! {
        #[test]
        fn set_then_remove_changes_nothing_of_others(names in prop::collection::btree_set("[a-z]{1,6}", 0..6)) {
            let mut doc = yaml::parse(OTHERS).unwrap();
            let names: Vec<String> = names.iter().map(|n| format!("x{n}")).collect();
            for name in &names {
                set(&mut doc, &entry(name), true);
            }
            for name in &names {
                prop_assert!(remove(&mut doc, name, &ours()));
            }
            set_current(&mut doc, "prod");
            prop_assert_eq!(doc, yaml::parse(OTHERS).unwrap());
        }
    }
}
