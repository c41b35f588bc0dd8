//! The documents of a node image in a registry: what an engine needs, and labels by which we know our own.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::RegistryError;
use crate::manifest::Manifest;

pub const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG_TYPE: &str = "application/vnd.oci.image.config.v1+json";
/// What engines of the last ten years can read.
const LAYER_TYPE: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
pub(super) const TITLE: &str = "org.opencontainers.image.title";

const NAME: &str = "manykube.node-image";
const KUBERNETES: &str = "manykube.kubernetes";
const FILES: &str = "manykube.files";
const SIZE: &str = "manykube.size";

/// A layer that is packed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    pub name: &'static str,
    /// Of the compressed bytes.
    pub digest: String,
    pub size: u64,
    /// Of the tar archive.
    pub diff_id: String,
}

/// What an image says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    pub name: String,
    pub kubernetes: String,
    pub architecture: String,
    /// The checksum of all checksums.
    pub files: String,
    /// Unpacked.
    pub size: u64,
}

#[derive(Deserialize, Serialize)]
struct Config {
    #[serde(default)]
    architecture: String,
    #[serde(default)]
    config: Inner,
}

#[derive(Default, Deserialize, Serialize)]
struct Inner {
    #[serde(default, rename = "Labels")]
    labels: Option<BTreeMap<String, String>>,
}

pub fn config(image: &Manifest, layers: &[Layer]) -> Value {
    let history =
        |l: &Layer| json!({ "created": image.built_at, "created_by": format!("manykube: {}", l.name) });
    json!({
        "created": image.built_at,
        "architecture": image.architecture,
        "os": "linux",
        "config": { "Labels": {
            NAME: image.name,
            KUBERNETES: image.kubernetes,
            FILES: image.files_sha256,
            SIZE: image.size.to_string(),
        }},
        "rootfs": { "type": "layers", "diff_ids": layers.iter().map(|l| &l.diff_id).collect::<Vec<_>>() },
        "history": layers.iter().map(history).collect::<Vec<_>>(),
    })
}

pub fn manifest(config: (&str, u64), layers: &[Layer]) -> Value {
    let layer = |l: &Layer| {
        json!({
            "mediaType": LAYER_TYPE, "digest": l.digest, "size": l.size, "annotations": { TITLE: l.name },
        })
    };
    json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPE,
        "config": { "mediaType": CONFIG_TYPE, "digest": config.0, "size": config.1 },
        "layers": layers.iter().map(layer).collect::<Vec<_>>(),
    })
}

impl Label {
    /// Of an image's configuration. Most images in the world are none of ours.
    pub fn read(config: &str) -> Result<Label, RegistryError> {
        let config: Config = serde_json::from_str(config).map_err(|_| RegistryError::NotOurs)?;
        let labels = config.config.labels.unwrap_or_default();
        Label::of(&config.architecture, &labels)
    }

    /// As an engine tells them.
    pub fn of<'a>(
        architecture: &str,
        labels: impl IntoIterator<Item = (&'a String, &'a String)>,
    ) -> Result<Label, RegistryError> {
        let labels: BTreeMap<&String, &String> = labels.into_iter().collect();
        let label = |key: &str| labels.get(&key.to_owned()).map(|v| (*v).clone());
        let read = || {
            Some(Label {
                name: label(NAME)?,
                kubernetes: label(KUBERNETES)?,
                architecture: architecture.to_owned(),
                files: label(FILES)?,
                size: label(SIZE)?.parse().ok()?,
            })
        };
        let label = read().ok_or(RegistryError::NotOurs)?;
        if label.architecture != crate::build::architecture() {
            return Err(RegistryError::Architecture(label.architecture));
        }
        Ok(label)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::sample;

    #[test]
    fn an_image_knows_itself_by_its_labels() {
        let manifest = Manifest { size: 17, files_sha256: "abc".into(), ..sample("v1.37.1-x", "v1.37.1") };
        let text = config(&manifest, &[]).to_string();
        let label = Label::read(&text).expect("a label");
        assert_eq!((&*label.name, &*label.kubernetes, label.size), ("v1.37.1-x", "v1.37.1", 17));
        let other = text.replace(crate::build::architecture(), "s390x");
        assert!(matches!(Label::read(&other), Err(RegistryError::Architecture(a)) if a == "s390x"));
        for foreign in ["", "[]", "{}", r#"{"config":{"Labels":null}}"#, r#"{"config":{"Labels":{"a":"b"}}}"#]
        {
            assert!(matches!(Label::read(foreign), Err(RegistryError::NotOurs)), "{foreign}");
        }
    }
}
