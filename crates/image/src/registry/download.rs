//! One layer, from a registry to a file: what an interrupted pull has got is not fetched again.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use futures::TryStreamExt as _;
use oci_client::Client;
use oci_client::client::BlobResponse;

use super::client::{failed, root};
use super::layer::Wanted;
use super::{Doing, LayerEvent, LayerProgress, Reference, RegistryError};

/// How often a connection may break without having brought anything.
const TRIES: u32 = 3;

/// The file has as many bytes as the layer; whether they are the right ones is seen when it is unpacked.
pub async fn download(
    registry: &Client,
    reference: &Reference,
    layer: &Wanted,
    dir: &Path,
    progress: &LayerProgress,
) -> Result<PathBuf> {
    let total = layer.size;
    let path = dir.join(layer.file_name());
    let mut tries = 0;
    loop {
        let before = length(&path);
        let told =
            |done| progress(LayerEvent { layer: layer.name.clone(), doing: Doing::Receiving, done, total });
        told(before);
        if before == total {
            return Ok(path);
        }
        let Err(error) = more(registry, reference, layer, &path, before.min(total), &told).await else {
            if length(&path) == total {
                continue;
            }
            // A registry that ends too soon is asked again as well.
            tries += 1;
            if tries == TRIES {
                let why = format!("it sends {} of {total} bytes of {}", length(&path), layer.digest);
                return Err(RegistryError::Registry { host: reference.host().to_owned(), why }.into());
            }
            continue;
        };
        tries = if length(&path) > before { 0 } else { tries + 1 };
        let transient = matches!(error.downcast_ref(), Some(RegistryError::Unreachable { .. }));
        if !transient || tries == TRIES {
            return Err(error);
        }
        tracing::warn!("{error:#}; going on at {} of {total} bytes", length(&path));
    }
}

fn length(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |m| m.len())
}

async fn more(
    registry: &Client,
    reference: &Reference,
    layer: &Wanted,
    path: &Path,
    from: u64,
    told: &(dyn Fn(u64) + Send + Sync),
) -> Result<()> {
    let answer = registry.pull_blob_stream_partial(reference.inner(), &*layer.digest, from, None).await;
    let (mut stream, mut done) = match answer.map_err(|e| failed(reference, e))? {
        BlobResponse::Partial(stream) => (stream, from),
        // It cannot begin in the middle.
        BlobResponse::Full(stream) => (stream, 0),
    };
    let mut file = fs_err::File::options().create(true).truncate(false).write(true).open(path)?;
    file.set_len(done)?;
    std::io::Seek::seek(&mut file, std::io::SeekFrom::Start(done))?;
    let broken =
        |e: std::io::Error| RegistryError::Unreachable { host: reference.host().to_owned(), why: root(&e) };
    while let Some(piece) = stream.try_next().await.map_err(broken)? {
        done += piece.len() as u64;
        // It may go on until the disk is full.
        if done > layer.size {
            fs_err::remove_file(path)?;
            let why = format!("it sends more than the {} bytes of {}", layer.size, layer.digest);
            return Err(RegistryError::Registry { host: reference.host().to_owned(), why }.into());
        }
        file.write_all(&piece).with_context(|| format!("keeping {}", layer.digest))?;
        told(done);
    }
    Ok(())
}
