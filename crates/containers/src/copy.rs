//! From one node to others: blobs are read from its containerd and written to theirs, which check and unpack them.
//! What a node says is believed only as far as its digests prove it.

use anyhow::{Context, Result, ensure};
use serde::de::DeserializeOwned;

use crate::Node;
use crate::containerd::messages::{Image as Record, Labels};
use crate::containerd::{Client, Lease, Source};
use crate::oci::{self, Config, Descriptor, Index, Manifest};
use crate::parcel::{Document, Parcel, Stack, index_labels, manifest_labels};

/// No image has more blobs.
const MOST: usize = 1000;
/// Bytes of all documents of an image.
const LONGEST: u64 = 4 * oci::LONGEST_DOCUMENT;

/// Images that `from` has, to `to`, each as a whole or not at all.
pub async fn copy(images: &[Record], from: &Node, to: &Node) -> Result<()> {
    for image in images {
        let parcel = describe(&from.client, image).await;
        let parcel = parcel.with_context(|| format!("read {} from node {}", image.name, from.name))?;
        parcel.send(to, |_| Ok(Source::Store(from.client.clone()))).await?;
    }
    Ok(())
}

/// Unpacks an image that a node has fetched. The name is the caller's to take back if this fails.
pub async fn unpack(node: &Node, name: &str) -> Result<()> {
    let image =
        node.client.image(name).await?.with_context(|| format!("node {} has no {name}", node.name))?;
    let lease = Lease::begin(&node.client).await?;
    let done = async {
        let parcel = describe(&lease.client, &image).await?;
        ensure!(!parcel.stacks.is_empty(), "it is not for the processor of this machine");
        for Document { descriptor, labels, .. } in &parcel.documents {
            lease.client.label_content(&descriptor.digest, labels.clone()).await?;
        }
        parcel.finish(&lease.client).await
    };
    let done = done.await;
    lease.end(done.is_err()).await?;
    done.with_context(|| format!("node {}: unpack {name}", node.name))
}

/// All that belongs to an image of a node. An index may name manifests for other processors, which are not there.
pub(crate) async fn describe(client: &Client, image: &Record) -> Result<Parcel> {
    let target = Descriptor::from(image.target.as_ref().context("it stands for nothing")?);
    let names = vec![image.name.clone()];
    let mut walk = Walk { client, left: LONGEST, found: 0 };
    let mut parcel =
        Parcel { names, target: target.clone(), layers: vec![], documents: vec![], stacks: vec![] };
    let mut open = vec![target.clone()];
    while let Some(descriptor) = open.pop() {
        if descriptor.is_index() {
            let Some(document) = walk.document(&descriptor).await? else { continue };
            let index: Index = read(&document)?;
            parcel.documents.push(Document { labels: index_labels(&index), ..document });
            open.extend(index.manifests);
        } else if let Some(document) = walk.document(&descriptor).await? {
            let manifest: Manifest = read(&document)?;
            parcel.documents.push(Document { labels: manifest_labels(&manifest), ..document });
            walk.parts(manifest, &mut parcel).await?;
        }
    }
    ensure!(!parcel.documents.is_empty(), "it is there only in part");
    // What is referred to comes before what refers to it.
    parcel.documents.reverse();
    Ok(parcel)
}

fn read<T: DeserializeOwned>(document: &Document) -> Result<T> {
    serde_json::from_slice(&document.data).with_context(|| format!("read {}", document.descriptor.digest))
}

/// Reads documents of a node, and no more than an image can have.
struct Walk<'a> {
    client: &'a Client,
    left: u64,
    found: usize,
}

impl Walk<'_> {
    fn count(&mut self, descriptor: &Descriptor) -> Result<()> {
        ensure!(oci::is_digest(&descriptor.digest), "{:?} is no digest", descriptor.digest);
        self.found += 1;
        ensure!(self.found <= MOST, "it has more than {MOST} blobs");
        Ok(())
    }

    async fn document(&mut self, of: &Descriptor) -> Result<Option<Document>> {
        self.count(of)?;
        let left = self.left.checked_sub(of.size);
        self.left = left.with_context(|| format!("its documents have more than {LONGEST} bytes"))?;
        let data = self.client.document(of).await?;
        Ok(data.map(|data| Document { descriptor: of.clone(), data, labels: Labels::new() }))
    }

    /// The layers of a manifest that are there, and its configuration. What it describes for this processor is unpacked;
    /// attestations and the like have neither layers to run nor a configuration of one.
    async fn parts(&mut self, manifest: Manifest, parcel: &mut Parcel) -> Result<()> {
        let mut whole = true;
        for layer in &manifest.layers {
            self.count(layer)?;
            match self.client.content(&layer.digest).await? {
                Some(_) => parcel.layers.push(layer.clone()),
                None => whole = false,
            }
        }
        let Some(document) = self.document(&manifest.config).await? else { return Ok(()) };
        let config: Config = serde_json::from_slice(&document.data).unwrap_or_default();
        let diff_ids = config.rootfs.diff_ids;
        let is_ours = config.platform.is_ours() && whole && diff_ids.len() == manifest.layers.len();
        let stack = is_ours.then(|| Stack(manifest.layers.into_iter().zip(diff_ids).collect()));
        let labels = stack.as_ref().map(Stack::labels).unwrap_or_default();
        parcel.documents.push(Document { labels, ..document });
        parcel.stacks.extend(stack);
        Ok(())
    }
}
