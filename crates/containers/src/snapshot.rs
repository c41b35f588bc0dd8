//! Unpacked layers, made by containerd from blobs.

use anyhow::{Context, Result};

use crate::containerd::Client;
use crate::oci::Descriptor;

pub const NAME: &str = "overlayfs";

/// The layer `name` on top of `parent`, from its blob.
pub async fn unpack(
    client: &Client,
    layer: &Descriptor,
    diff_id: &str,
    name: &str,
    parent: &str,
) -> Result<()> {
    if client.has_snapshot(name).await? {
        return Ok(());
    }
    let key = format!("manykube-{} {name}", uuid::Uuid::new_v4());
    let mounts = client.prepare(&key, parent).await?;
    let unpacked = match client.apply(layer, mounts).await {
        Ok(digest) if digest == diff_id => Ok(()),
        Ok(digest) => Err(anyhow::anyhow!("its content is {digest}, but should be {diff_id}")),
        Err(e) => Err(e.into()),
    };
    if let Err(e) = unpacked {
        let _ = client.remove_snapshot(&key).await;
        return Err(e).with_context(|| format!("unpack the layer {}", layer.digest));
    }
    Ok(client.commit(name, &key).await?)
}
