//! `docker save` of old: `manifest.json` names files, and nothing has a digest but what is in the layers.

use std::io::{Read, Seek, SeekFrom};

use anyhow::{Context, Result};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::files::Files;
use super::{Image, diff_ids, full_names};
use crate::oci::{self, CONFIG, Descriptor, LAYER, LAYER_GZIP, MANIFEST, Manifest};

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Saved {
    config: String,
    repo_tags: Option<Vec<String>>,
    #[serde(default)]
    layers: Vec<String>,
}

/// Those that have a name.
pub fn images(files: &Files, list: &[u8]) -> Result<Vec<Image>> {
    let list: Vec<Saved> = serde_json::from_slice(list).context("read manifest.json")?;
    let mut images = Vec::new();
    for saved in list {
        let names = full_names(saved.repo_tags.iter().flatten().map(String::as_str))?;
        if !names.is_empty() {
            images.push(image(files, &saved, names)?);
        }
    }
    if images.is_empty() {
        anyhow::bail!("none of its images has a name");
    }
    Ok(images)
}

fn image(files: &Files, saved: &Saved, names: Vec<String>) -> Result<Image> {
    let shown = || format!("the image {}", names.join(", "));
    let data = files.document(&saved.config)?;
    let data = data.with_context(|| format!("{} is missing", saved.config)).with_context(shown)?;
    let diff_ids = diff_ids(&data, saved.layers.len()).with_context(shown)?;
    let mut layers = Vec::new();
    for (place, id) in saved.layers.iter().zip(&diff_ids) {
        layers.push((layer(files, place, id).with_context(shown)?, place.clone()));
    }
    let config = descriptor(CONFIG, oci::digest(&data), data.len() as u64);
    let manifest = Manifest {
        schema_version: 2,
        media_type: MANIFEST.to_owned(),
        config: config.clone(),
        layers: layers.iter().map(|(d, _)| d.clone()).collect(),
    };
    let text = serde_json::to_vec(&manifest)?;
    let manifest = descriptor(MANIFEST, oci::digest(&text), text.len() as u64);
    Ok(Image { names, manifest: (manifest, text), config: (config, data), layers, diff_ids })
}

/// A layer that is not compressed has the digest that the configuration names; containerd checks it.
fn layer(files: &Files, place: &str, diff_id: &str) -> Result<Descriptor> {
    let size = files.size(place).with_context(|| format!("the layer {place} is missing"))?;
    let mut blob = files.blob(place)?;
    blob.file.seek(SeekFrom::Start(blob.start))?;
    let mut source = blob.file.take(size);
    let mut buffer = vec![0; 256 * 1024];
    let mut read = source.read(&mut buffer)?;
    if !buffer[..read].starts_with(&[0x1f, 0x8b]) {
        return Ok(descriptor(LAYER, diff_id.to_owned(), size));
    }
    let mut hasher = Sha256::new();
    while read > 0 {
        hasher.update(&buffer[..read]);
        read = source.read(&mut buffer)?;
    }
    Ok(descriptor(LAYER_GZIP, oci::format_digest(&hasher.finalize()), size))
}

fn descriptor(media_type: &str, digest: String, size: u64) -> Descriptor {
    Descriptor { media_type: media_type.to_owned(), digest, size, ..Descriptor::default() }
}
