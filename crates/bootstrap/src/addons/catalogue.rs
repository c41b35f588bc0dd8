//! What `addons` can switch on and off: manifests of ours, and the images that they need.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use model::Cluster;
use serde_json::Value;

use super::{StorageImages, registry, storage};
use crate::manifest;

/// Which image stands for which word of a manifest.
pub type Images = BTreeMap<String, String>;

pub struct Addon {
    pub name: &'static str,
    pub maintainer: &'static str,
    /// The words of its images, and what stands for them unless the user says otherwise.
    pub images: &'static [(&'static str, &'static str)],
    objects: Objects,
}

enum Objects {
    /// The part of the storage's objects that are (or are not) of this kind.
    Storage {
        class: bool,
    },
    Manifest(&'static str),
    Registry,
    /// Known to minikube, and not to be had here.
    Nothing,
}

const STORAGE: &[(&str, &str)] = &[
    ("LocalPathProvisioner", "docker.io/rancher/local-path-provisioner"),
    ("Helper", "docker.io/library/busybox"),
];

/// By name.
pub const ADDONS: &[Addon] = &[
    Addon {
        name: "dashboard",
        maintainer: "Kubernetes",
        images: &[
            ("Dashboard", "docker.io/kubernetesui/dashboard:v2.7.0"),
            ("MetricsScraper", "docker.io/kubernetesui/metrics-scraper:v1.0.8"),
        ],
        objects: Objects::Manifest(include_str!("dashboard.yaml")),
    },
    Addon {
        name: "default-storageclass",
        maintainer: "manykube",
        images: STORAGE,
        objects: Objects::Storage { class: true },
    },
    Addon { name: "ingress", maintainer: "Kubernetes", images: &[], objects: Objects::Nothing },
    Addon { name: "ingress-dns", maintainer: "minikube", images: &[], objects: Objects::Nothing },
    Addon {
        name: "metrics-server",
        maintainer: "Kubernetes",
        images: &[("MetricsServer", "registry.k8s.io/metrics-server/metrics-server:v0.8.0")],
        objects: Objects::Manifest(include_str!("metrics-server.yaml")),
    },
    Addon {
        name: registry::NAME,
        maintainer: "manykube",
        images: &[("Registry", "docker.io/library/registry")],
        objects: Objects::Registry,
    },
    Addon {
        name: "storage-provisioner",
        maintainer: "manykube",
        images: STORAGE,
        objects: Objects::Storage { class: false },
    },
];

pub fn find(name: &str) -> Option<&'static Addon> {
    ADDONS.iter().find(|a| a.name == name)
}

impl Addon {
    /// Whether there is anything that could be applied.
    pub fn is_available(&self) -> bool {
        !matches!(self.objects, Objects::Nothing)
    }

    /// `images` has a full name for every word; `port` is the registry's.
    pub fn objects(&self, images: &Images, cluster: &Cluster, port: u16) -> Result<Vec<Value>> {
        let image = |word: &str| images.get(word).cloned().with_context(|| format!("no image {word}"));
        let filled = |text: String| {
            let fill = |text: String, (word, _): &(&str, &str)| {
                Ok::<_, anyhow::Error>(text.replace(&format!("{{{word}}}"), &image(word)?))
            };
            manifest::objects(&self.images.iter().try_fold(text, fill)?)
        };
        match self.objects {
            Objects::Nothing => Ok(Vec::new()),
            Objects::Storage { class } => {
                let storage =
                    StorageImages { provisioner: image("LocalPathProvisioner")?, helper: image("Helper")? };
                let mut objects = storage::objects(&storage)?;
                objects.retain(|o| (o["kind"] == "StorageClass") == class);
                Ok(objects)
            }
            Objects::Manifest(text) => filled(text.to_owned()),
            Objects::Registry => filled(registry::manifest(cluster, port)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn every_manifest_is_one_and_names_its_images() {
        for addon in ADDONS.iter().filter(|a| a.is_available()) {
            let images: Images =
                addon.images.iter().map(|(w, _)| ((*w).to_owned(), format!("r.example/{w}:1"))).collect();
            let objects = addon.objects(&images, &fixture::cluster(1, 0), 5000).expect(addon.name);
            assert!(!objects.is_empty(), "{}", addon.name);
            let text = serde_json::to_string(&objects).expect("json");
            let needs_none = addon.name == "default-storageclass";
            assert!(needs_none || images.values().all(|i| text.contains(i.as_str())), "{}", addon.name);
            let left = |w: &&String| text.contains(&format!("{{{w}}}"));
            assert_eq!(images.keys().find(left), None, "{}: a word is left in {text}", addon.name);
        }
    }

    #[test]
    fn the_list_is_sorted() {
        assert!(ADDONS.is_sorted_by_key(|a| a.name));
        assert!(find("ingress").is_some_and(|a| !a.is_available()) && find("frob").is_none());
    }
}
