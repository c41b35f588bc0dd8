//! An image on its way to a node, wherever it comes from.

use anyhow::{Context, Result};
use bytes::Bytes;

use crate::Node;
use crate::containerd::messages::{Image as Record, Labels};
use crate::containerd::{Client, Lease, Source};
use crate::oci::{self, Descriptor, Index, Manifest};
use crate::snapshot;

/// Marks an image as known to the kubelet's side of containerd, which would otherwise add an alias for each.
pub const MANAGED: (&str, &str) = ("io.cri-containerd.image", "managed");

pub struct Parcel {
    /// Full names, at least one.
    pub names: Vec<String>,
    pub target: Descriptor,
    /// What is stored as it is.
    pub layers: Vec<Descriptor>,
    /// Each after those that it refers to.
    pub documents: Vec<Document>,
    pub stacks: Vec<Stack>,
}

pub struct Document {
    pub descriptor: Descriptor,
    pub data: Bytes,
    /// What it refers to, so that it is kept as well.
    pub labels: Labels,
}

/// Layers to be unpacked on top of each other, the lowest first, each with the digest of what is in it.
pub struct Stack(pub Vec<(Descriptor, String)>);

impl Parcel {
    /// To a node, which checks all digests. It is there as a whole or not at all.
    pub async fn send(&self, node: &Node, open: impl Fn(&Descriptor) -> Result<Source>) -> Result<()> {
        let lease = Lease::begin(&node.client).await?;
        let done = self.put(&lease.client, open).await;
        // A lease that cannot be ended now ends by itself.
        let ended = lease.end(done.is_err()).await;
        done.with_context(|| format!("put {} there", self.names.join(", ")))?;
        Ok(ended?)
    }

    async fn put(&self, client: &Client, open: impl Fn(&Descriptor) -> Result<Source>) -> Result<()> {
        for layer in &self.layers {
            let put = client.put_content(layer, open(layer)?, Labels::new()).await;
            put.with_context(|| layer.digest.clone())?;
        }
        for Document { descriptor, data, labels } in &self.documents {
            let put = client.put_content(descriptor, Source::Data(data.clone()), labels.clone()).await;
            put.with_context(|| descriptor.digest.clone())?;
        }
        self.finish(client).await
    }

    /// When all blobs are there.
    pub async fn finish(&self, client: &Client) -> Result<()> {
        for stack in &self.stacks {
            let (diff_ids, mut parent) = (stack.diff_ids(), String::new());
            for ((layer, diff_id), name) in stack.0.iter().zip(oci::chain_ids(&diff_ids)) {
                snapshot::unpack(client, layer, diff_id, &name, &parent).await?;
                parent = name;
            }
        }
        for name in &self.names {
            client.name_image(record(name, &self.target)).await?;
        }
        Ok(())
    }
}

impl Stack {
    fn diff_ids(&self) -> Vec<String> {
        self.0.iter().map(|(_, diff_id)| diff_id.clone()).collect()
    }

    /// Of the image's configuration.
    pub fn labels(&self) -> Labels {
        let top = oci::chain_ids(&self.diff_ids()).pop();
        top.map(|top| (format!("containerd.io/gc.ref.snapshot.{}", snapshot::NAME), top))
            .into_iter()
            .collect()
    }
}

pub fn manifest_labels(manifest: &Manifest) -> Labels {
    let config = ("containerd.io/gc.ref.content.config".to_owned(), manifest.config.digest.clone());
    numbered("l", &manifest.layers).chain([config]).collect()
}

pub fn index_labels(index: &Index) -> Labels {
    numbered("m", &index.manifests).collect()
}

fn numbered<'a>(kind: &str, all: &'a [Descriptor]) -> impl Iterator<Item = (String, String)> + use<'a> {
    let prefix = format!("containerd.io/gc.ref.content.{kind}");
    all.iter().enumerate().map(move |(i, d)| (format!("{prefix}.{i}"), d.digest.clone()))
}

fn record(name: &str, target: &Descriptor) -> Record {
    let labels = Labels::from([(MANAGED.0.to_owned(), MANAGED.1.to_owned())]);
    Record { name: name.to_owned(), labels, target: Some(target.into()) }
}
