//! What images a node has, for people.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::containerd::messages::Image as Record;
use crate::containerd::{Client, Error};
use crate::oci::{Descriptor, Index, Manifest};
use crate::{Node, familiar, reference};

/// Documents that are read for one image.
const MOST: usize = 100;

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
        let found_here = match identity(&node.client, record).await {
            // One odd record hides no other image.
            Err(e) if matches!(e, Error::Unsound(_)) || e.is_not_found() => {
                tracing::debug!("node {}: {}: {e}", node.name, record.name);
                None
            }
            found_here => found_here.with_context(|| format!("node {}", node.name))?,
        };
        let Some((id, size)) = found_here else { continue };
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
    let Some(record) = node.client.image(name).await? else { return Ok(0) };
    Ok(identity(&node.client, &record).await?.map_or(0, |(_, size)| size))
}

/// The digest of its configuration, and how much its blobs have. `None` for what is no image to run.
async fn identity(client: &Client, record: &Record) -> Result<Option<(String, u64)>, Error> {
    let Some(target) = record.target.as_ref().map(Descriptor::from) else { return Ok(None) };
    let mut open = vec![target];
    // A node may say that there are many.
    for _ in 0..MOST {
        let Some(descriptor) = open.pop() else { break };
        let Some(data) = client.document(&descriptor).await? else { continue };
        if let Ok(index) = serde_json::from_slice::<Index>(&data)
            && descriptor.is_index()
        {
            let ours = |d: &Descriptor| d.platform.as_ref().is_none_or(|p| p.is_ours());
            open.extend(index.manifests.into_iter().filter(ours).rev());
        } else if let Ok(manifest) = serde_json::from_slice::<Manifest>(&data) {
            let all = manifest.layers.iter().chain([&manifest.config]);
            let size = all.fold(0_u64, |sum, blob| sum.saturating_add(blob.size));
            return Ok(Some((manifest.config.digest, size)));
        }
    }
    Ok(None)
}
