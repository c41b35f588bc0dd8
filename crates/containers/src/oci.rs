//! The documents of an image, as far as they are needed here. Docker's and the OCI's have the same fields.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

pub const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const DOCKER_INDEX: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
pub const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
pub const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
pub const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";
pub const LAYER_GZIP: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// No document of an image is longer; a layer may be.
pub const LONGEST_DOCUMENT: u64 = 16 << 20;

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    #[serde(default)]
    pub media_type: String,
    pub digest: String,
    pub size: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<Platform>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Platform {
    #[serde(default)]
    pub architecture: String,
    #[serde(default)]
    pub os: String,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Index {
    #[serde(default)]
    pub manifests: Vec<Descriptor>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    pub schema_version: u32,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub media_type: String,
    pub config: Descriptor,
    #[serde(default)]
    pub layers: Vec<Descriptor>,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub struct Config {
    #[serde(flatten)]
    pub platform: Platform,
    #[serde(default)]
    pub rootfs: Rootfs,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub struct Rootfs {
    #[serde(default)]
    pub diff_ids: Vec<String>,
}

impl Descriptor {
    pub fn is_index(&self) -> bool {
        self.media_type == INDEX || self.media_type == DOCKER_INDEX
    }
}

impl Platform {
    /// The nodes' own: they run on this machine's processor.
    pub fn is_ours(&self) -> bool {
        let ours = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        self.os == "linux" && self.architecture == ours
    }
}

pub fn hex_of(digest: &str) -> &str {
    digest.strip_prefix("sha256:").unwrap_or(digest)
}

/// What a node or an archive calls a digest must be one.
pub fn is_digest(text: &str) -> bool {
    text.strip_prefix("sha256:")
        .is_some_and(|h| h.len() == 64 && h.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)))
}

pub fn digest(data: &[u8]) -> String {
    format_digest(&Sha256::digest(data))
}

pub fn format_digest(hash: &[u8]) -> String {
    hash.iter().fold("sha256:".to_owned(), |text, byte| text + &format!("{byte:02x}"))
}

/// The names of the unpacked layers: each stands for all below it as well.
pub fn chain_ids(diff_ids: &[String]) -> Vec<String> {
    let mut chain: Vec<String> = Vec::new();
    for id in diff_ids {
        chain.push(match chain.last() {
            Some(below) => digest(format!("{below} {id}").as_bytes()),
            None => id.clone(),
        });
    }
    chain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_are_the_specifications() {
        let ids = [digest(b"a"), digest(b"b")];
        let chain = chain_ids(&ids);
        assert_eq!(chain[0], ids[0]);
        assert_eq!(chain[1], digest(format!("{} {}", ids[0], ids[1]).as_bytes()));
        assert!(chain_ids(&[]).is_empty());
    }

    #[test]
    fn only_a_digest_is_one() {
        assert!(is_digest(&digest(b"")));
        for bad in ["", "sha256:", "sha256:../../x", &digest(b"").to_uppercase(), "md5:00"] {
            assert!(!is_digest(bad), "{bad}");
        }
    }
}
