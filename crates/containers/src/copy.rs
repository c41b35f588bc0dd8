//! From one node to others: blobs are read from its containerd and written to theirs, which check and unpack them.
//! What a node says is believed only as far as its digests prove it.

use anyhow::{Context, Result, bail, ensure};
use serde::de::DeserializeOwned;

use crate::Node;
use crate::containerd::messages::{Image as Record, Labels};
use crate::containerd::{Client, Error, Lease, Source};
use crate::oci::{self, Config, Descriptor, Index, Manifest, Platform};
use crate::parcel::{Document, Parcel, Stack, index_labels, manifest_labels};

/// No image has more blobs.
const MOST: usize = 1000;
/// Bytes of all documents of an image.
const LONGEST: u64 = 4 * oci::LONGEST_DOCUMENT;

/// containerd does not fetch a layer that it has unpacked from another blob: such an image runs on that node only.
#[derive(Debug, thiserror::Error)]
#[error("node {node} lacks {what} of {image}: pull it again there")]
pub struct Lacks {
    node: String,
    what: String,
    image: String,
}

/// Images that `from` has, to `to`, each as a whole or not at all. One that fails does not stop the others, unless a
/// node does not answer.
pub async fn copy(images: &[Record], from: &Node, to: &Node) -> Result<()> {
    let mut failed = Vec::new();
    for image in images {
        let Err(error) = copy_one(image, from, to).await else { continue };
        let silent = matches!(error.downcast_ref(), Some(Error::Connect(_)));
        failed.push(format!("{error:#}"));
        if silent {
            break;
        }
    }
    if failed.is_empty() { Ok(()) } else { bail!("{}", failed.join("; ")) }
}

/// The error is [`Lacks`] when `from` has only a part of the image.
pub async fn copy_one(image: &Record, from: &Node, to: &Node) -> Result<()> {
    let described = describe(&from.client, image).await;
    let (parcel, lacks) =
        described.with_context(|| format!("read {} from node {}", image.name, from.name))?;
    if let Some(what) = lacks {
        bail!(Lacks { node: from.name.clone(), what, image: image.name.clone() });
    }
    parcel.send(to, |_| Ok(Source::Store(from.client.clone()))).await
}

/// Unpacks an image that a node has fetched. The name is the caller's to take back if this fails.
pub async fn unpack(node: &Node, name: &str) -> Result<()> {
    let image =
        node.client.image(name).await?.with_context(|| format!("node {} has no {name}", node.name))?;
    let lease = Lease::begin(&node.client).await?;
    let done = async {
        let (parcel, lacks) = describe(&lease.client, &image).await?;
        if let Some(what) = lacks {
            bail!("the node lacks {what}");
        }
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

/// All that belongs to an image of a node, and what is not there of that which this processor needs. An index may name
/// manifests for other processors, which are not there.
pub(crate) async fn describe(client: &Client, image: &Record) -> Result<(Parcel, Option<String>)> {
    let target = Descriptor::from(image.target.as_ref().context("it stands for nothing")?);
    let names = vec![image.name.clone()];
    let mut walk = Walk { client, left: LONGEST, found: 0, lacks: None };
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
            walk.parts(&descriptor, manifest, &mut parcel).await?;
        }
    }
    ensure!(!parcel.documents.is_empty(), "it is there only in part");
    // What is referred to comes before what refers to it.
    parcel.documents.reverse();
    Ok((parcel, walk.lacks))
}

fn read<T: DeserializeOwned>(document: &Document) -> Result<T> {
    serde_json::from_slice(&document.data).with_context(|| format!("read {}", document.descriptor.digest))
}

/// Reads documents of a node, and no more than an image can have.
struct Walk<'a> {
    client: &'a Client,
    left: u64,
    found: usize,
    lacks: Option<String>,
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
    async fn parts(&mut self, of: &Descriptor, manifest: Manifest, parcel: &mut Parcel) -> Result<()> {
        let mut missing = None;
        for layer in &manifest.layers {
            self.count(layer)?;
            match self.client.content(&layer.digest).await? {
                Some(_) => parcel.layers.push(layer.clone()),
                None => missing = Some(format!("layer {}", layer.digest)),
            }
        }
        let Some(document) = self.document(&manifest.config).await? else {
            // Only an index says then which processor it is for.
            if of.platform.as_ref().is_none_or(Platform::is_ours) {
                self.lacks = Some(format!("the configuration {}", manifest.config.digest));
            }
            return Ok(());
        };
        let config: Config = serde_json::from_slice(&document.data).unwrap_or_default();
        let diff_ids = config.rootfs.diff_ids;
        let is_ours = config.platform.is_ours() && diff_ids.len() == manifest.layers.len();
        if is_ours && missing.is_some() {
            self.lacks = missing;
        }
        let stack = is_ours.then(|| Stack(manifest.layers.into_iter().zip(diff_ids).collect()));
        let labels = stack.as_ref().map(Stack::labels).unwrap_or_default();
        parcel.documents.push(Document { labels, ..document });
        parcel.stacks.extend(stack);
        Ok(())
    }
}
