//! The node image as an image of the engine: brought there once, under a name that says what is in it.

use std::sync::Arc;

use anyhow::{Context, Result};
use bollard::Docker as Client;
use bollard::models::ImageInspect;
use bollard::query_parameters::CreateImageOptionsBuilder;
use futures::TryStreamExt as _;
use image::NodeImage;
use image::registry::{Doing, LayerEvent, LayerProgress};

use super::container::is_missing;
use super::flow::{self, Writer};
use super::refused;

pub const REPOSITORY: &str = "manykube/node";

/// The images of our store are named by what they were made of.
pub fn reference(image: &NodeImage) -> String {
    format!("{REPOSITORY}:{}", image.name)
}

pub async fn has(client: &Client, image: &NodeImage) -> Result<bool> {
    Ok(inspect(client, &reference(image)).await?.is_some())
}

/// Any image of the engine; `None` when it has none of that name.
pub async fn inspect(client: &Client, name: &str) -> Result<Option<ImageInspect>> {
    match client.inspect_image(name).await {
        Ok(found) => Ok(Some(found)),
        Err(e) if is_missing(&e) => Ok(None),
        Err(e) => Err(e).with_context(|| format!("look for the image {name} in the engine")),
    }
}

pub async fn ensure(client: &Client, image: &NodeImage, progress: Arc<LayerProgress>) -> Result<String> {
    let reference = reference(image);
    if has(client, image).await? {
        return Ok(reference);
    }
    let (writer, stream) = flow::to_engine();
    let packed = image.clone();
    let packing = tokio::task::spawn_blocking(move || pack(&packed, writer, progress));
    // With its tag in one: podman does not look at the other parameter.
    let options = CreateImageOptionsBuilder::default().from_src("-").repo(&reference).build();
    let body = bollard::body_try_stream(stream);
    let client = flow::unhurried(client);
    let brought = client.create_image(Some(options), Some(body), None).try_collect::<Vec<_>>().await;
    let packed = packing.await?;
    if let Err(error) = brought {
        if let Some(full) = refused::disk(&error.to_string()) {
            return Err(full.into());
        }
        // Why it could not be read says more than that the engine got half of it.
        let half = packed.err().filter(|e| !flow::gave_up(e));
        let why = half.unwrap_or_else(|| error.into());
        return Err(why.context(format!("bring the node image {} to the engine", image.name)));
    }
    packed.with_context(|| format!("read the node image {}", image.name))?;
    Ok(reference)
}

fn pack(image: &NodeImage, writer: Writer, progress: Arc<LayerProgress>) -> Result<()> {
    let total = image.system_size()?;
    let at = move |done| LayerEvent { layer: "system".to_owned(), doing: Doing::Sending, done, total };
    let told = progress.clone();
    // An archive is a little more than its files.
    let writer = writer.telling(move |done| told(at(done.min(total.saturating_sub(1)))));
    flow::pack(writer, |tar| {
        tar.follow_symlinks(false);
        for entry in fs_err::read_dir(image.rootfs())? {
            let (entry, name) = entry.map(|e| (e.path(), e.file_name()))?;
            if name == "var" {
                // Every node has its own, from our store.
                tar.append_dir(&name, &entry)?;
            } else if entry.is_dir() && !entry.is_symlink() {
                tar.append_dir_all(&name, &entry)?;
            } else {
                tar.append_path_with_name(&entry, &name)?;
            }
        }
        Ok(())
    })?;
    progress(at(total));
    Ok(())
}
