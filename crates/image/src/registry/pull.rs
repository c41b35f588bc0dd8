//! From a registry to the store.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use oci_client::Client;
use oci_client::secrets::RegistryAuth;
use tokio::sync::Mutex;

use super::client::{auth, client, failed};
use super::documents::Label;
use super::download::download;
use super::layer::Wanted;
use super::{Doing, LayerEvent, LayerProgress, Login, Reference, RegistryError, name_user};
use crate::arrival::{self, Arrival};
use crate::bounds::Room;
use crate::store::{NodeImage, Store};

/// Brings the image to the store unless it is there, and the digest that the name stands for. Nothing of it is
/// in the store before all of it is there and every file has been compared with what was built.
pub async fn pull(
    store: &Store,
    reference: &Reference,
    plain: bool,
    progress: Arc<LayerProgress>,
) -> Result<(NodeImage, String)> {
    if let Some(digest) = reference.digest()
        && let Some(image) = store.by_digest(digest)?
    {
        return Ok((image, digest.to_owned()));
    }
    let login = Login::to(reference).await;
    let registry = client(reference, plain)?;
    let fetched = fetch(store, reference, &registry, &auth(reference, login.as_ref()), progress).await;
    fetched.map_err(|e| name_user(e, login.as_ref()))
}

async fn fetch(
    store: &Store,
    reference: &Reference,
    registry: &Client,
    auth: &RegistryAuth,
    progress: Arc<LayerProgress>,
) -> Result<(NodeImage, String)> {
    let answer = registry.pull_manifest_and_config_and_list_digest(reference.inner(), auth).await;
    let (manifest, digest, config, list) = answer.map_err(|e| failed(reference, e))?;
    // Of several architectures together, the name stands for all of them.
    let digest = list.unwrap_or(digest);
    if let Some(image) = store.by_digest(&digest)? {
        return Ok((image, digest));
    }
    let label = Label::read(&config)?;
    if let Some(image) = store.same(&label)? {
        image.add_digest(&digest)?;
        return Ok((image, digest));
    }
    let layers = manifest.layers.iter().map(Wanted::read).collect::<Result<Vec<_>, _>>()?;
    let compressed = layers.iter().fold(0, |sum: u64, layer| sum.saturating_add(layer.size));
    arrival::room(store, compressed.saturating_add(label.size))?;
    let own = store.clone();
    let arrival = tokio::task::spawn_blocking(move || Arrival::new(&own)).await??;
    let rootfs = arrival.rootfs();
    // Not swept with what else is left half-done: it is what the next try goes on with.
    let kept = store.images_dir().join(PULLING);
    fs_err::create_dir_all(&kept)?;
    // Fetched at the same time and unpacked one after the other: what tar sees of a path is still true when it
    // writes there.
    let unpacking = Mutex::new(Room::of(label.size));
    let one = |layer| one(registry, reference, layer, (&kept, &rootfs), &unpacking, progress.clone());
    // All come to an end before what they wrote is thrown away because of one.
    let ended = futures::future::join_all(layers.iter().map(one)).await;
    ended.into_iter().collect::<Result<()>>()?;
    let image = {
        let digest = digest.clone();
        tokio::task::spawn_blocking(move || arrival.adopt(Some(&digest))).await??
    };
    fs_err::remove_dir_all(&kept)?;
    Ok((image, digest))
}

/// Layers of which not all has come.
const PULLING: &str = ".pulling";

async fn one(
    registry: &Client,
    reference: &Reference,
    layer: &Wanted,
    (kept, rootfs): (&Path, &Path),
    unpacking: &Mutex<Room>,
    progress: Arc<LayerProgress>,
) -> Result<()> {
    let file = download(registry, reference, layer, kept, &*progress).await?;
    let mut room = unpacking.lock().await;
    let (rootfs, left, layer) = (rootfs.to_owned(), room.clone(), layer.clone());
    let digest = layer.digest.clone();
    *room = tokio::task::spawn_blocking(move || {
        let total = layer.size;
        let told =
            |done| progress(LayerEvent { layer: layer.name.clone(), doing: Doing::Unpacking, done, total });
        let (found, unpacked) = arrival::unpack_file(&file, &rootfs, &left, &told)?;
        // It says more than where in the middle it could not be unpacked.
        if found != layer.digest {
            // What is wrong stays wrong however often it is gone on with.
            fs_err::remove_file(&file)?;
            let what = format!("the layer {} that came", layer.name);
            return Err(RegistryError::Digest { what, wanted: layer.digest, found }.into());
        }
        unpacked.map(|()| left)
    })
    .await?
    .with_context(|| format!("unpacking the layer {digest}"))?;
    Ok(())
}
