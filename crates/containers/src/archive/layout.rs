//! The OCI's layout: `index.json` leads to blobs that are named by their digests.

use anyhow::{Context, Result, bail};

use super::files::Files;
use super::{Image, diff_ids, full_names};
use crate::oci::{self, Descriptor, Index, MANIFEST, Manifest};

/// Whoever writes one keeps the full name here; the other annotation may have only the tag.
const FULL_NAME: &str = "io.containerd.image.name";
const REF_NAME: &str = "org.opencontainers.image.ref.name";

/// Those that have a name, for the nodes' processor.
pub fn images(files: &Files, index: &[u8]) -> Result<Vec<Image>> {
    let index: Index = serde_json::from_slice(index).context("read index.json")?;
    let mut images: Vec<Image> = Vec::new();
    for descriptor in &index.manifests {
        let names = names(descriptor)?;
        if names.is_empty() || descriptor.platform.as_ref().is_some_and(|p| !p.is_ours()) {
            continue;
        }
        let image =
            image(files, descriptor, names).with_context(|| format!("the image {}", descriptor.digest))?;
        match images.iter_mut().find(|i| i.manifest.0.digest == image.manifest.0.digest) {
            Some(same) => same.names.extend(image.names),
            None => images.push(image),
        }
    }
    Ok(images)
}

fn names(descriptor: &Descriptor) -> Result<Vec<String>> {
    let full = descriptor.annotations.get(FULL_NAME);
    // A name of its own, as podman and skopeo write it, has a path or a tag.
    let other = descriptor.annotations.get(REF_NAME).filter(|n| n.contains(['/', ':']));
    full_names(full.or(other).map(String::as_str).into_iter())
}

fn image(files: &Files, descriptor: &Descriptor, names: Vec<String>) -> Result<Image> {
    let (descriptor, data) = manifest(files, descriptor, 0)?;
    let manifest: Manifest = serde_json::from_slice(&data).context("read its manifest")?;
    let config = document(files, &manifest.config).context("its configuration")?;
    let diff_ids = diff_ids(&config, manifest.layers.len())?;
    let mut layers = Vec::new();
    for layer in manifest.layers {
        let place = place(&layer)?;
        match files.size(&place) {
            None => bail!("the layer {} is missing", layer.digest),
            Some(size) if size != layer.size => {
                bail!("the layer {} has {size} bytes, but should have {}", layer.digest, layer.size)
            }
            Some(_) => layers.push((layer, place)),
        }
    }
    Ok(Image { names, manifest: (descriptor, data), config: (manifest.config, config), layers, diff_ids })
}

/// The manifest for the nodes' processor, which may be one of many.
fn manifest(files: &Files, descriptor: &Descriptor, depth: u32) -> Result<(Descriptor, Vec<u8>)> {
    let data = document(files, descriptor)?;
    if !descriptor.is_index() {
        let mut descriptor = Descriptor { annotations: Default::default(), ..descriptor.clone() };
        if descriptor.media_type.is_empty() {
            descriptor.media_type = MANIFEST.to_owned();
        }
        return Ok((descriptor, data));
    }
    let index: Index = serde_json::from_slice(&data).context("read its index")?;
    let ours = |d: &&Descriptor| d.platform.as_ref().is_none_or(|p| p.is_ours());
    let found = index.manifests.iter().find(ours).filter(|_| depth < 4);
    manifest(files, found.context("it is not for the processor of this machine")?, depth + 1)
}

fn document(files: &Files, descriptor: &Descriptor) -> Result<Vec<u8>> {
    let data = files.document(&place(descriptor)?)?;
    let data = data.with_context(|| format!("{} is missing", descriptor.digest))?;
    if oci::digest(&data) != descriptor.digest {
        bail!("{} has another digest: {}", descriptor.digest, oci::digest(&data));
    }
    Ok(data)
}

fn place(descriptor: &Descriptor) -> Result<String> {
    if !oci::is_digest(&descriptor.digest) {
        bail!("{:?} is no digest", descriptor.digest);
    }
    Ok(format!("blobs/sha256/{}", oci::hex_of(&descriptor.digest)))
}
