//! From an archive into a node's containerd, which checks and unpacks it.

use anyhow::{Context, Result, bail};

use crate::Node;
use crate::archive::{Archive, Image};
use crate::containerd::messages::{Image as Record, Labels};
use crate::containerd::{Blob, Client, Lease};
use crate::oci::{self, Descriptor};
use crate::snapshot;

/// Marks an image as known to the kubelet's side of containerd, which would otherwise add an alias for each.
pub const MANAGED: (&str, &str) = ("io.cri-containerd.image", "managed");

/// All images of the archive, each as a whole or not at all.
pub async fn put(archive: &Archive, node: &Node) -> Result<()> {
    for image in &archive.images {
        let lease = Lease::begin(&node.client).await.with_context(|| format!("node {}", node.name))?;
        let done = one(archive, image, &lease.client).await;
        // A lease that cannot be ended now ends by itself.
        let ended = lease.end(done.is_err()).await;
        done.with_context(|| format!("node {}: put {} there", node.name, image.names.join(", ")))?;
        ended?;
    }
    Ok(())
}

async fn one(archive: &Archive, image: &Image, client: &Client) -> Result<()> {
    for (layer, place) in &image.layers {
        if client.content(&layer.digest).await?.is_none() {
            let blob = archive.blob(place)?;
            client
                .put_content(layer, Some(blob), Labels::new())
                .await
                .with_context(|| layer.digest.clone())?;
        }
    }
    let (config, data) = &image.config;
    let chain = oci::chain_ids(&image.diff_ids);
    let top =
        chain.last().map(|top| (format!("containerd.io/gc.ref.snapshot.{}", snapshot::NAME), top.clone()));
    document(client, config, data, top.into_iter().collect()).await?;
    let (manifest, data) = &image.manifest;
    let layers = image.layers.iter().enumerate();
    let mut labels: Labels =
        layers.map(|(i, (l, _))| (format!("containerd.io/gc.ref.content.l.{i}"), l.digest.clone())).collect();
    labels.insert("containerd.io/gc.ref.content.config".to_owned(), config.digest.clone());
    document(client, manifest, data, labels).await?;

    let mut parent = "";
    for (((layer, _), diff_id), name) in image.layers.iter().zip(&image.diff_ids).zip(&chain) {
        snapshot::unpack(client, layer, diff_id, name, parent).await?;
        parent = name;
    }
    for name in &image.names {
        client.name_image(record(name, manifest)).await?;
    }
    Ok(())
}

async fn document(client: &Client, descriptor: &Descriptor, data: &[u8], labels: Labels) -> Result<()> {
    let mut file = tempfile::tempfile().context("make a temporary file")?;
    std::io::Write::write_all(&mut file, data).context("write a temporary file")?;
    if data.len() as u64 != descriptor.size {
        bail!("{} has {} bytes, but should have {}", descriptor.digest, data.len(), descriptor.size);
    }
    client.put_content(descriptor, Some(Blob { file, start: 0 }), labels).await?;
    Ok(())
}

pub fn record(name: &str, target: &Descriptor) -> Record {
    let labels = Labels::from([(MANAGED.0.to_owned(), MANAGED.1.to_owned())]);
    Record { name: name.to_owned(), labels, target: Some(target.into()) }
}
