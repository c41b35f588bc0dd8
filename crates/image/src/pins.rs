//! The pinned versions (`pins.yaml`), and which Kubernetes version a user means.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pins {
    /// Component → version, for those that all Kubernetes versions share.
    pub components: BTreeMap<String, String>,
    pub busybox: Named,
    pub debian: Debian,
    /// Newest first.
    pub kubernetes: Vec<Kubernetes>,
    /// Lines of go.sum.
    pub sums: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Debian {
    pub suite: String,
    pub packages: Vec<String>,
}

/// A Kubernetes version and what its kubeadm asks for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kubernetes {
    pub version: String,
    /// The commit of the tag, where it is known: it is only shown by `kubectl version -o yaml`.
    pub commit: Option<String>,
    pub etcd: Named,
    pub coredns: Named,
    pub pause: String,
}

/// A component whose image is known by a tag that may differ from its version.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Named {
    pub tag: String,
    pub version: String,
    pub note: Option<String>,
}

impl Pins {
    /// The pinned checksum of a Go module.
    pub fn sum(&self, module: &str, version: &str) -> Option<&str> {
        self.sums.lines().find_map(|line| {
            let mut words = line.split_whitespace();
            (words.next() == Some(module) && words.next() == Some(version)).then(|| words.next())?
        })
    }

    pub fn kubernetes(&self, version: &str) -> Result<&Kubernetes, UnknownVersion> {
        let unknown = || UnknownVersion { asked: version.into(), known: known(self).join(", ") };
        self.kubernetes.iter().find(|pin| pin.version == version).ok_or_else(unknown)
    }
}

// The file is part of the program, and a test reads it: it cannot be wrong at run time.
#[allow(clippy::expect_used)]
static PINS: LazyLock<Pins> =
    LazyLock::new(|| serde_saphyr::from_str(include_str!("../pins.yaml")).expect("pins.yaml is valid"));

pub fn pins() -> &'static Pins {
    &PINS
}

/// A Kubernetes version there are no pins for.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no node image recipe for Kubernetes {asked:?}; known versions: {known}")]
pub struct UnknownVersion {
    pub asked: String,
    pub known: String,
}

/// The Kubernetes version of a cluster that names none.
pub fn default_version() -> &'static str {
    &pins().kubernetes[0].version
}

/// Newest first.
pub fn known_versions() -> Vec<&'static str> {
    known(pins())
}

/// `v1.37.1`, `1.37.1`, `v1.37`, `1.37`, `stable`, `latest` → a known version.
pub fn resolve_version(asked: &str) -> Result<String, UnknownVersion> {
    resolve(&known_versions(), asked)
}

fn known(pins: &Pins) -> Vec<&str> {
    pins.kubernetes.iter().map(|pin| pin.version.as_str()).collect()
}

fn resolve(known: &[&str], asked: &str) -> Result<String, UnknownVersion> {
    let wanted = asked.strip_prefix('v').unwrap_or(asked);
    let matches = |version: &&&str| {
        let version = version.trim_start_matches('v');
        // `1.3` must not mean 1.37.1: a prefix counts only up to a dot.
        version == wanted
            || version.strip_prefix(wanted).is_some_and(|rest| rest.starts_with('.') && wanted.contains('.'))
    };
    let found = match asked {
        "stable" | "latest" => known.first(),
        _ => known.iter().find(matches),
    };
    match found {
        Some(version) => Ok((*version).to_owned()),
        None => Err(UnknownVersion { asked: asked.into(), known: known.join(", ") }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pins_are_complete() {
        let pins = pins();
        assert_eq!(default_version(), "v1.37.1");
        for kubernetes in &pins.kubernetes {
            let etcd = &kubernetes.etcd.version;
            let modules = [
                ("k8s.io/kubernetes", &kubernetes.version),
                ("github.com/coredns/coredns", &kubernetes.coredns.version),
                ("go.etcd.io/etcd/server/v3", etcd),
                ("go.etcd.io/etcd/etcdctl/v3", etcd),
                ("go.etcd.io/etcd/etcdutl/v3", etcd),
            ];
            for (module, version) in modules {
                assert!(
                    pins.sum(module, version).is_some_and(|s| s.starts_with("h1:")),
                    "{module} {version}"
                );
            }
        }
        let mut sorted = known_versions();
        sorted.sort_by(|a, b| b.cmp(a));
        assert_eq!(sorted, known_versions(), "newest first");
    }

    #[test]
    fn a_tag_differs_from_its_version_only_with_a_note() {
        for kubernetes in &pins().kubernetes {
            for named in [&kubernetes.etcd, &kubernetes.coredns] {
                let plain = |text: &str| text.trim_start_matches('v').split('-').next().map(str::to_owned);
                assert!(plain(&named.tag) == plain(&named.version) || named.note.is_some(), "{named:?}");
            }
        }
    }

    #[test]
    fn what_a_user_may_write() {
        let known = ["v1.37.1", "v1.36.4", "v1.3.9"];
        let cases = [
            ("v1.37.1", "v1.37.1"),
            ("1.37.1", "v1.37.1"),
            ("1.37", "v1.37.1"),
            ("v1.36", "v1.36.4"),
            ("stable", "v1.37.1"),
            ("latest", "v1.37.1"),
            ("1.3", "v1.3.9"),
        ];
        for (asked, version) in cases {
            assert_eq!(resolve(&known, asked).as_deref(), Ok(version), "{asked}");
        }
        for asked in ["", "v", "1", "v1.37.2", "1.38", "1.37.", "newest", "v1.37.1-rc.0"] {
            let error = resolve(&known, asked).unwrap_err();
            assert_eq!((error.asked.as_str(), error.known.as_str()), (asked, "v1.37.1, v1.36.4, v1.3.9"));
        }
    }
}
