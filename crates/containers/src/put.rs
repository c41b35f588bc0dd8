//! From an archive into a node's containerd, which checks and unpacks it.

use anyhow::{Context, Result};

use crate::Node;
use crate::archive::{Archive, Image};
use crate::containerd::Source;
use crate::containerd::messages::Labels;
use crate::oci::{Descriptor, Manifest};
use crate::parcel::{Document, Parcel, Stack, manifest_labels};

/// All images of the archive, each as a whole or not at all.
pub async fn put(archive: &Archive, node: &Node) -> Result<()> {
    for image in &archive.images {
        let open = |layer: &Descriptor| {
            let found = image.layers.iter().find(|(known, _)| known.digest == layer.digest);
            let (_, place) = found.with_context(|| format!("the layer {} is missing", layer.digest))?;
            Ok(Source::File(archive.blob(place)?))
        };
        parcel(image)?.send(node, open).await?;
    }
    Ok(())
}

fn parcel(image: &Image) -> Result<Parcel> {
    let layers: Vec<Descriptor> = image.layers.iter().map(|(layer, _)| layer.clone()).collect();
    let stack = Stack(layers.iter().cloned().zip(image.diff_ids.iter().cloned()).collect());
    let document = |(descriptor, data): &(Descriptor, Vec<u8>), labels: Labels| Document {
        descriptor: descriptor.clone(),
        data: data.clone().into(),
        labels,
    };
    let manifest: Manifest = serde_json::from_slice(&image.manifest.1).context("read its manifest")?;
    Ok(Parcel {
        names: image.names.clone(),
        target: image.manifest.0.clone(),
        documents: vec![
            document(&image.config, stack.labels()),
            document(&image.manifest, manifest_labels(&manifest)),
        ],
        layers,
        stacks: vec![stack],
    })
}
