//! A home for engines that do not see this host's files: a volume of theirs.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use bollard::models::VolumeCreateRequest;
use bollard::query_parameters::{
    DownloadFromContainerOptionsBuilder, RemoveVolumeOptions, UploadToContainerOptionsBuilder,
};
use bytes::Bytes;
use futures::TryStreamExt as _;

use super::Engine;
use crate::docker::{CREATED_BY, HOME, container};

#[derive(Debug, Clone)]
pub struct Volume {
    pub name: String,
    /// On the engine's host, where the engine takes what nodes mount.
    pub path: PathBuf,
    /// It was made just now.
    pub fresh: bool,
}

impl Engine {
    /// That of a home of this host.
    pub async fn volume(&self, home: &Path) -> Result<Volume> {
        let host = fs_err::read_to_string("/etc/machine-id").unwrap_or_default();
        let whose = format!("{}{}", host.trim(), home.display());
        let name = format!("manykube-{}", model::names::tagged("", &whose));
        let fresh = match self.client.inspect_volume(&name).await {
            Ok(_) => false,
            Err(e) if container::is_missing(&e) => true,
            Err(e) => return Err(e).with_context(|| format!("look at the volume {name} of the engine")),
        };
        let labels = [(CREATED_BY, "true".to_owned()), (HOME, home.display().to_string())];
        let request = VolumeCreateRequest {
            name: Some(name.clone()),
            labels: Some(labels.map(|(k, v)| (k.to_owned(), v)).into()),
            ..VolumeCreateRequest::default()
        };
        let volume = self.client.create_volume(request).await;
        let volume = volume.with_context(|| format!("make the volume {name}"))?;
        Ok(Volume { name, path: volume.mountpoint.into(), fresh })
    }

    pub async fn remove_volume(&self, volume: &Volume) -> Result<()> {
        let removed = self.client.remove_volume(&volume.name, None::<RemoveVolumeOptions>).await;
        removed.with_context(|| format!("remove the volume {} of the engine", volume.name))
    }

    /// Puts files into a container that has not begun, below a directory that is there.
    pub(super) async fn put(&self, id: &str, below: &Path, tar: Vec<u8>) -> Result<()> {
        let options = UploadToContainerOptionsBuilder::default().path(&below.to_string_lossy()).build();
        let body = bollard::body_full(Bytes::from(tar));
        let put = self.client.upload_to_container(id, Some(options), body).await;
        put.context("send files to the engine")
    }

    /// A directory of a container that has ended, as an archive; `None` when there is none.
    pub(super) async fn get(&self, id: &str, path: &Path) -> Result<Option<Vec<u8>>> {
        let options = DownloadFromContainerOptionsBuilder::default().path(&path.to_string_lossy()).build();
        let parts = self.client.download_from_container(id, Some(options)).try_collect::<Vec<Bytes>>().await;
        match parts {
            Ok(parts) => Ok(Some(parts.concat())),
            Err(e) if container::is_missing(&e) => Ok(None),
            Err(e) => Err(e).context("fetch files from the engine"),
        }
    }
}
