//! One layer, from a registry to a file: what an interrupted pull has got is not fetched again.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use futures::TryStreamExt as _;
use oci_client::Client;
use oci_client::client::BlobResponse;
use oci_client::manifest::OciDescriptor;

use super::client::{failed, root};
use super::{Doing, LayerEvent, LayerProgress, Reference, RegistryError};

/// How often a connection may break without having brought anything.
const TRIES: u32 = 3;

/// The file has as many bytes as the layer; whether they are the right ones is seen when it is unpacked.
pub async fn download(
    registry: &Client,
    reference: &Reference,
    layer: &OciDescriptor,
    (name, dir): (&str, &Path),
    progress: &LayerProgress,
) -> Result<PathBuf> {
    let total = u64::try_from(layer.size).unwrap_or(0);
    let path = dir.join(layer.digest.trim_start_matches("sha256:"));
    let mut tries = 0;
    loop {
        let before = length(&path);
        progress(LayerEvent { layer: name.to_owned(), doing: Doing::Receiving, done: before, total });
        if before == total {
            return Ok(path);
        }
        let told =
            |done| progress(LayerEvent { layer: name.to_owned(), doing: Doing::Receiving, done, total });
        let Err(error) = more(registry, reference, layer, &path, before.min(total), &told).await else {
            // A registry that ends too soon, or sends too much, is asked again as well.
            match length(&path) {
                now if now == total => continue,
                now if now > total => fs_err::remove_file(&path)?,
                _ => {}
            }
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
    layer: &OciDescriptor,
    path: &Path,
    from: u64,
    told: &(dyn Fn(u64) + Send + Sync),
) -> Result<()> {
    let answer = registry.pull_blob_stream_partial(reference.inner(), layer, from, None).await;
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
        file.write_all(&piece).with_context(|| format!("keeping {}", layer.digest))?;
        done += piece.len() as u64;
        told(done);
    }
    Ok(())
}
