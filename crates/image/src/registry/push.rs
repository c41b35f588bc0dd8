//! From the store to a registry.

use std::io::Read as _;
use std::sync::Arc;

use anyhow::Result;
use bytes::Bytes;
use futures::stream;
use oci_client::errors::OciDistributionError;
use oci_client::secrets::RegistryAuth;
use oci_client::{Client, RegistryOperation};

use super::client::{auth, client, failed};
use super::documents::{self, Layer, MANIFEST_TYPE};
use super::pack::{Packed, pack};
use super::parts::Part;
use super::{Doing, LayerEvent, LayerProgress, Login, Reference, RegistryError, name_user};
use crate::hash;
use crate::store::{NodeImage, Store};

const PIECE: usize = 1 << 20;
/// What the OCI's specification calls an empty blob.
const EMPTY: &str = "{}";

/// Gives the registry what it has not got of the image, and its name last; the digest it has there. Without the
/// name nobody finds what an interrupted push has left.
pub async fn push(
    store: &Store,
    image: &NodeImage,
    reference: &Reference,
    plain: bool,
    progress: Arc<LayerProgress>,
) -> Result<String> {
    let login = Login::to(reference).await;
    let registry = client(reference, plain)?;
    let sent = send_all(store, image, reference, &registry, &auth(reference, login.as_ref()), progress).await;
    sent.map_err(|e| name_user(e, login.as_ref()))
}

async fn send_all(
    store: &Store,
    image: &NodeImage,
    reference: &Reference,
    registry: &Client,
    auth: &RegistryAuth,
    progress: Arc<LayerProgress>,
) -> Result<String> {
    let asked = registry.auth(reference.inner(), auth, RegistryOperation::Push).await;
    asked.map_err(|e| failed(reference, e))?;
    // Whether we may is first looked at when we do: better before all is packed than after.
    let empty = format!("sha256:{}", hash::bytes(EMPTY.as_bytes()));
    let sent = registry.push_blob(reference.inner(), EMPTY, &empty).await;
    sent.map_err(|e| failed(reference, e))?;
    let layers = Part::ALL.map(|part| layer(store, image, part, reference, registry, &progress));
    let layers: Vec<Layer> = futures::future::try_join_all(layers).await?;
    let config = documents::config(&image.manifest, &layers).to_string();
    let digest = format!("sha256:{}", hash::bytes(config.as_bytes()));
    let manifest = documents::manifest((&digest, config.len() as u64), &layers).to_string();
    let sent = registry.push_blob(reference.inner(), Bytes::from(config), &digest).await;
    sent.map_err(|e| failed(reference, e))?;
    let digest = format!("sha256:{}", hash::bytes(manifest.as_bytes()));
    let kind = http::HeaderValue::from_static(MANIFEST_TYPE);
    let named = registry.push_manifest_raw(reference.inner(), manifest, kind).await;
    named.map_err(|e| failed(reference, e))?;
    image.add_digest(&digest)?;
    Ok(digest)
}

async fn layer(
    store: &Store,
    image: &NodeImage,
    part: Part,
    reference: &Reference,
    registry: &Client,
    progress: &Arc<LayerProgress>,
) -> Result<Layer> {
    let (own, dir, told) = (image.clone(), store.images_dir(), progress.clone());
    let Packed { layer, file } =
        tokio::task::spawn_blocking(move || pack(&own, part, &dir, &*told)).await??;
    let exists = registry.blob_exists(reference.inner(), &layer.digest).await;
    if !exists.map_err(|e| failed(reference, e))? {
        send(file, &layer, reference, registry, progress.clone()).await?;
    }
    let (doing, done, total) = (Doing::Sending, layer.size, layer.size);
    progress(LayerEvent { layer: layer.name.to_owned(), doing, done, total });
    Ok(layer)
}

async fn send(
    file: std::fs::File,
    layer: &Layer,
    reference: &Reference,
    registry: &Client,
    progress: Arc<LayerProgress>,
) -> Result<(), RegistryError> {
    let (name, total) = (layer.name.to_owned(), layer.size);
    let pieces = stream::try_unfold((file, 0), move |(mut file, done)| {
        let (progress, layer) = (progress.clone(), name.clone());
        async move {
            let mut piece = vec![0; PIECE];
            let read = file.read(&mut piece).map_err(OciDistributionError::IoError)?;
            if read == 0 {
                return Ok(None);
            }
            piece.truncate(read);
            let done = done + read as u64;
            // The last one is told when the registry has said that it has it.
            if done < total {
                progress(LayerEvent { layer, doing: Doing::Sending, done, total });
            }
            Ok(Some((Bytes::from(piece), (file, done))))
        }
    });
    let sent = registry.push_blob_stream(reference.inner(), pieces, &layer.digest, Some(layer.size)).await;
    sent.map(drop).map_err(|e| failed(reference, e))
}
