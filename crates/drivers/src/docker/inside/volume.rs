//! A home for engines that do not see this host's files: a volume of theirs.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
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
    /// The id of the engine that has it: those of one home bear one name at all engines.
    pub engine: String,
}

/// More than the records of many clusters.
const MOST: usize = 64 << 20;

impl Engine {
    /// That of a home of this host.
    pub async fn volume(&self, home: &Path) -> Result<Volume> {
        let machine = std::fs::read_to_string("/etc/machine-id").unwrap_or_default();
        let name = name(machine.trim(), home)?;
        let engine = self.client.info().await.context("ask the engine who it is")?.id;
        let engine = engine.context("the engine has no id")?;
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
        Ok(Volume { name, path: volume.mountpoint.into(), fresh, engine })
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
        let mut parts = self.client.download_from_container(id, Some(options));
        let mut all = Vec::new();
        loop {
            match parts.try_next().await {
                Ok(Some(part)) => all.extend_from_slice(&part),
                Ok(None) => return Ok(Some(all)),
                Err(e) if container::is_missing(&e) => return Ok(None),
                Err(e) => return Err(e).context("fetch files from the engine"),
            }
            if all.len() > MOST {
                bail!("the engine sends more files than there can be");
            }
        }
    }
}

/// Of a home's volume. Where the host can be told from others, a home that was removed finds its clusters again.
fn name(machine: &str, home: &Path) -> Result<String> {
    let own = if is_one(machine) { None } else { own_id(home)? };
    let whose = format!("{}{}", own.as_deref().unwrap_or(machine), home.display());
    Ok(format!("manykube-{}", model::names::tagged("", &whose)))
}

/// In images of containers it is empty, or a word of systemd's that stands for none yet.
fn is_one(machine: &str) -> bool {
    machine.len() == 32
        && machine.bytes().all(|b| b.is_ascii_hexdigit())
        && machine.bytes().any(|b| b != b'0')
}

/// Written once. Homes that used a volume before there were such ids have none, and go by the name that it had.
fn own_id(home: &Path) -> Result<Option<String>> {
    let dir = home.join("config");
    let file = dir.join("home-id");
    if let Ok(id) = std::fs::read_to_string(&file) {
        return Ok(Some(id));
    }
    if dir.join("images-elsewhere").exists() {
        return Ok(None);
    }
    let id = fs_err::read_to_string("/proc/sys/kernel/random/uuid")?;
    fs_err::create_dir_all(&dir)?;
    let mut new = tempfile::NamedTempFile::new_in(&dir).context("make an id for the home")?;
    let written = new.write_all(id.trim().as_bytes()).and_then(|()| new.as_file().sync_all());
    written.context("write the home's id")?;
    // Another command may have been faster: what it wrote counts.
    match new.persist_noclobber(&file) {
        Err(e) if e.error.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(e.error).context("write the home's id")
        }
        _ => Ok(Some(fs_err::read_to_string(&file)?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINE: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn a_host_that_has_an_id_names_it() {
        let home = Path::new("/root/.manykube");
        // As it has always been: clusters are found by it.
        assert_eq!(
            name(MACHINE, home).unwrap(),
            format!("manykube-{}", model::names::tagged("", &format!("{MACHINE}/root/.manykube")))
        );
    }

    #[test]
    fn others_go_by_an_id_of_their_own() {
        for none in ["", "uninitialized", "00000000000000000000000000000000"] {
            assert!(!is_one(none), "{none}");
        }
        let homes = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let ids = homes.each_ref().map(|home| own_id(home.path()).unwrap());
        assert!(ids.iter().all(Option::is_some));
        assert_ne!(ids[0], ids[1]);
        assert_eq!(own_id(homes[0].path()).unwrap(), ids[0], "it is kept");
        assert_eq!(std::fs::read_dir(homes[0].path().join("config")).unwrap().count(), 1);
    }

    #[test]
    fn a_home_from_before_keeps_its_volume() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("config")).unwrap();
        std::fs::write(home.path().join("config/images-elsewhere"), "").unwrap();
        let old = model::names::tagged("", &home.path().display().to_string());
        assert_eq!(name("", home.path()).unwrap(), format!("manykube-{old}"));
    }
}
