//! An image that holds this program and nothing else, and is named after it.

use anyhow::{Context, Result};
use bollard::Docker as Client;
use bollard::query_parameters::{CreateImageOptionsBuilder, ListImagesOptionsBuilder, RemoveImageOptions};
use bytes::Bytes;
use futures::TryStreamExt as _;

use super::PROGRAM;
use crate::docker::flow;
use crate::docker::image::inspect;

const REPOSITORY: &str = "manykube/command";

/// Its name; brought to the engine if it has none, which then loses those of other versions.
pub async fn ensure(client: &Client) -> Result<String> {
    let tag = crate::agent::version()?;
    let reference = format!("{REPOSITORY}:{tag}");
    if inspect(client, &reference).await?.is_some() {
        return Ok(reference);
    }
    forget_others(client).await;
    let program = tokio::task::spawn_blocking(|| fs_err::read("/proc/self/exe")).await??;
    let options = CreateImageOptionsBuilder::default().from_src("-").repo(REPOSITORY).tag(&tag).build();
    let body = bollard::body_full(Bytes::from(packed(&program)?));
    let client = flow::unhurried(client);
    let brought = client.create_image(Some(options), Some(body), None).try_collect::<Vec<_>>().await;
    brought.context("bring this program to the engine").map(|_| reference)
}

fn packed(program: &[u8]) -> Result<Vec<u8>> {
    let mut tar = tar::Builder::new(Vec::with_capacity(program.len() + 4096));
    let mut header = tar::Header::new_gnu();
    header.set_size(program.len() as u64);
    header.set_mode(0o755);
    tar.append_data(&mut header, PROGRAM.trim_start_matches('/'), program)?;
    Ok(tar.into_inner()?)
}

/// One that is in use stays, and so does one that the engine does not want to lose: it only takes room.
async fn forget_others(client: &Client) {
    let filters = std::collections::HashMap::from([("reference", vec![REPOSITORY])]);
    let options = ListImagesOptionsBuilder::default().filters(&filters).build();
    let Ok(images) = client.list_images(Some(options)).await else { return };
    for tag in images.into_iter().flat_map(|image| image.repo_tags) {
        let _ = client.remove_image(&tag, None::<RemoveImageOptions>, None).await;
    }
}
