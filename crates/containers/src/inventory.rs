//! What images a node has, for people.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::containerd::messages::Image as Record;
use crate::oci::{Descriptor, Index, Manifest};
use crate::{Node, familiar, reference};

/// An image under all its names, as minikube lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Listed {
    pub id: String,
    pub repo_digests: Vec<String>,
    pub repo_tags: Vec<String>,
    /// Bytes, as text.
    pub size: String,
}

/// By id.
pub async fn list(node: &Node) -> Result<BTreeMap<String, Listed>> {
    let records = node.client.images().await.with_context(|| format!("node {}", node.name))?;
    let mut found: BTreeMap<String, Listed> = BTreeMap::new();
    for record in records.iter().filter(|r| familiar(&r.name)) {
        let Some((id, size)) = identity(node, record) else { continue };
        let listed = found.entry(id.clone()).or_insert_with(|| Listed {
            id: id.trim_start_matches("sha256:").to_owned(),
            repo_digests: Vec::new(),
            repo_tags: Vec::new(),
            size: size.to_string(),
        });
        let (path, tag) = reference::parts(&record.name);
        if tag.is_some() {
            listed.repo_tags.push(record.name.clone());
        }
        let digest = record.target.as_ref().map(|t| t.digest.clone()).unwrap_or_default();
        listed.repo_digests.push(format!("{path}@{digest}"));
    }
    for listed in found.values_mut() {
        listed.repo_tags.sort();
        listed.repo_digests.sort();
        listed.repo_digests.dedup();
    }
    Ok(found)
}

/// How much the blobs of an image have; 0 when the node does not have it.
pub async fn size(node: &Node, name: &str) -> Result<u64> {
    let record = node.client.image(name).await.with_context(|| format!("node {}", node.name))?;
    Ok(record.and_then(|r| identity(node, &r)).map_or(0, |(_, size)| size))
}

/// The digest of its configuration, and how much its blobs have. `None` for what is no image to run.
fn identity(node: &Node, record: &Record) -> Option<(String, u64)> {
    let mut target = Descriptor::from(record.target.as_ref()?);
    let read = |d: &Descriptor| std::fs::read(node.blob(d.hex())).ok();
    if target.is_index() {
        let index: Index = serde_json::from_slice(&read(&target)?).ok()?;
        let here = |d: &&Descriptor| d.platform.as_ref().is_none_or(|p| p.is_ours()) && read(d).is_some();
        target = index.manifests.iter().find(here)?.clone();
    }
    let manifest: Manifest = serde_json::from_slice(&read(&target)?).ok()?;
    let size = manifest.config.size + manifest.layers.iter().map(|l| l.size).sum::<u64>();
    Some((manifest.config.digest, size))
}
