//! From one node to another of the same host: nothing is sent, nothing is unpacked again.

use anyhow::{Context, Result};

use crate::Node;
use crate::containerd::messages::{Image as Record, Labels};
use crate::containerd::{Blob, Client, Lease};
use crate::oci::{self, Config, Descriptor, Index, Manifest};
use crate::put::{MANAGED, record};
use crate::snapshot;

/// Images that `from` has, to `to`. Each is there as a whole or not at all.
pub async fn copy(images: &[Record], from: &Node, to: &Node) -> Result<()> {
    for image in images {
        let Some(target) = image.target.as_ref().map(Descriptor::from) else { continue };
        // On the source, too: what is looked at there must not be collected meanwhile.
        let looks = Lease::begin(&from.client).await.with_context(|| format!("node {}", from.name))?;
        let source = Node { client: looks.client.clone(), ..from.clone() };
        let lease = Lease::begin(&to.client).await.with_context(|| format!("node {}", to.name))?;
        let done = one(&image.name, &target, &source, to, &lease.client).await;
        let ended = lease.end(done.is_err()).await;
        // It ends by itself if it cannot be ended now.
        let _ = looks.end(false).await;
        done.with_context(|| format!("node {}: put {} there", to.name, image.name))?;
        ended?;
    }
    Ok(())
}

async fn one(name: &str, target: &Descriptor, from: &Node, to: &Node, client: &Client) -> Result<()> {
    let content = walk(from, target).await?;
    for blob in &content.blobs {
        take(from, to, client, blob).await?;
    }
    for chain in &content.chains {
        let mut parent = "";
        for name in chain {
            snapshot::link(from, to, client, name, parent).await?;
            parent = name;
        }
    }
    Ok(client.name_image(record(name, target)).await?)
}

async fn take(from: &Node, to: &Node, client: &Client, (blob, labels): &(Descriptor, Labels)) -> Result<()> {
    let (source, target) = (from.blob(blob.hex()), to.blob(blob.hex()));
    // containerd finds the file when it is told of the blob. If it cannot be linked, or is collected before
    // it is told, the bytes are sent.
    let _ = std::fs::hard_link(&source, &target);
    let file = fs_err::File::open(&source)?.into_parts().0;
    let labels = labels.clone();
    client.put_content(blob, Some(Blob { file, start: 0 }), labels).await.with_context(|| blob.digest.clone())
}

/// All that belongs to an image on a node.
#[derive(Default)]
struct Content {
    /// What is referred to comes before what refers to it.
    blobs: Vec<(Descriptor, Labels)>,
    /// The unpacked layers, the lowest first.
    chains: Vec<Vec<String>>,
}

/// An index may name manifests for other processors, which are not there.
async fn walk(node: &Node, target: &Descriptor) -> Result<Content> {
    let mut content = Content::default();
    let mut open = vec![target.clone()];
    while let Some(descriptor) = open.pop() {
        let Some(info) = node.client.content(&descriptor.digest).await? else {
            if descriptor.digest == target.digest {
                anyhow::bail!("node {} has only a part of it", node.name);
            }
            continue;
        };
        if descriptor.is_index() {
            open.extend(document::<Index>(node, &descriptor)?.manifests);
        } else if let Ok(manifest) = document::<Manifest>(node, &descriptor) {
            content.chains.extend(unpacked(node, &manifest).await?);
            // Attestations beside an image have neither layers to run nor a configuration of one.
            open.extend(manifest.layers.iter().chain([&manifest.config]).cloned().map(plain));
        }
        content.blobs.push((descriptor, references(info.labels)));
    }
    content.blobs.reverse();
    content.blobs.dedup_by(|a, b| a.0.digest == b.0.digest);
    Ok(content)
}

/// Of a layer or a configuration only the bytes are looked at.
fn plain(descriptor: Descriptor) -> Descriptor {
    Descriptor { media_type: String::new(), ..descriptor }
}

fn document<T: serde::de::DeserializeOwned>(node: &Node, descriptor: &Descriptor) -> Result<T> {
    if descriptor.media_type.is_empty() || descriptor.size > oci::LONGEST_DOCUMENT {
        anyhow::bail!("{} is no document", descriptor.digest);
    }
    serde_json::from_slice(&fs_err::read(node.blob(descriptor.hex()))?)
        .with_context(|| format!("read {}", descriptor.digest))
}

async fn unpacked(node: &Node, manifest: &Manifest) -> Result<Option<Vec<String>>> {
    let Ok(data) = fs_err::read(node.blob(manifest.config.hex())) else { return Ok(None) };
    let Ok(config) = serde_json::from_slice::<Config>(&data) else { return Ok(None) };
    let chain = oci::chain_ids(&config.rootfs.diff_ids);
    let Some(top) = chain.last() else { return Ok(None) };
    Ok(node.client.has_snapshot(top).await?.then_some(chain))
}

/// Unpacks an image that a node has fetched. The name is the caller's to take back if this fails.
pub async fn unpack(node: &Node, name: &str) -> Result<()> {
    let image =
        node.client.image(name).await?.with_context(|| format!("node {} has no {name}", node.name))?;
    let target = image.target.as_ref().map(Descriptor::from).unwrap_or_default();
    let lease = Lease::begin(&node.client).await?;
    let done = unpack_under(node, &lease.client, name, &target).await;
    lease.end(done.is_err()).await?;
    done.with_context(|| format!("node {}: unpack {name}", node.name))
}

async fn unpack_under(node: &Node, client: &Client, name: &str, target: &Descriptor) -> Result<()> {
    let mut manifest = target.clone();
    if manifest.is_index() {
        let index: Index = document(node, &manifest)?;
        let ours = |d: &&Descriptor| d.platform.as_ref().is_none_or(|p| p.is_ours());
        let found = index.manifests.iter().find(ours).cloned();
        manifest = found.context("it is not for the processor of this machine")?;
    }
    let manifest: Manifest = document(node, &manifest)?;
    let config: Config = serde_json::from_slice(&fs_err::read(node.blob(manifest.config.hex()))?)?;
    let chain = oci::chain_ids(&config.rootfs.diff_ids);
    let mut parent = "";
    for ((layer, diff_id), name) in manifest.layers.iter().zip(&config.rootfs.diff_ids).zip(&chain) {
        snapshot::unpack(client, layer, diff_id, name, parent).await?;
        parent = name;
    }
    let label = format!("containerd.io/gc.ref.snapshot.{}", snapshot::NAME);
    client.label_content(&manifest.config.digest, Labels::from([(label, parent.to_owned())])).await?;
    Ok(client.name_image(record(name, target)).await?)
}

/// Labels that say what a blob refers to, and nothing of where it came from.
fn references(labels: Labels) -> Labels {
    let kept = ["containerd.io/gc.ref.", "containerd.io/uncompressed"];
    labels.into_iter().filter(|(key, _)| kept.iter().any(|k| key.starts_with(k))).collect()
}

/// Was this image made by the kubelet's side of containerd, or marked as ours?
pub fn is_managed(image: &Record) -> bool {
    image.labels.get(MANAGED.0).is_some_and(|v| v == MANAGED.1)
}
