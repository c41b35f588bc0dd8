//! Files that go along with a command, and those that come back: in a directory of its container, which goes with it.
//! The command finds itself in that directory and calls them `./NAME`.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use bollard::query_parameters::{DownloadFromContainerOptionsBuilder, UploadToContainerOptionsBuilder};
use tempfile::NamedTempFile;

use super::Engine;
use crate::docker::{flow, refused};

/// The directory, in the container.
pub const PLACE: &str = "/luggage";

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Luggage {
    /// Files and directories of ours, and what they are called there.
    pub there: Vec<(PathBuf, String)>,
    /// A file that the command makes, and where it is to be here.
    pub back: Option<(String, PathBuf)>,
}

impl Luggage {
    pub fn is_empty(&self) -> bool {
        self.there.is_empty() && self.back.is_none()
    }
}

impl Engine {
    pub(super) async fn send(&self, id: &str, luggage: &Luggage) -> Result<()> {
        if luggage.is_empty() {
            return Ok(());
        }
        let (writer, stream) = flow::to_engine();
        let files = luggage.there.clone();
        let packing = tokio::task::spawn_blocking(move || pack(&files, writer));
        let options = UploadToContainerOptionsBuilder::default().path("/").build();
        let body = bollard::body_try_stream(stream);
        let sent = flow::unhurried(&self.client).upload_to_container(id, Some(options), body).await;
        // Why a file could not be read says more than that the engine got half of it.
        packing.await?.or_else(|e| if flow::gave_up(&e) && sent.is_err() { Ok(()) } else { Err(e) })?;
        sent.map_err(|e| match refused::disk(&e.to_string()) {
            Some(full) => full.into(),
            None => anyhow::Error::new(e).context("send files to the engine"),
        })
    }

    pub(super) async fn fetch(&self, id: &str, luggage: &Luggage) -> Result<()> {
        let Some((name, to)) = &luggage.back else { return Ok(()) };
        let path = Path::new(PLACE).join(name);
        let options = DownloadFromContainerOptionsBuilder::default().path(&path.to_string_lossy()).build();
        let stream = self.client.download_from_container(id, Some(options));
        let (sender, reader) = flow::from_engine();
        let own = to.clone();
        let taking = tokio::task::spawn_blocking(move || receive(reader, &own));
        let received = flow::hand_on(stream, sender).await;
        let taken = taking.await?;
        received.context("fetch a file from the engine")?;
        taken.and_then(|file| keep(file, to)).with_context(|| format!("write {}", to.display()))
    }
}

fn pack(files: &[(PathBuf, String)], writer: flow::Writer) -> Result<()> {
    flow::pack(writer, |tar| {
        let place = Path::new(PLACE.trim_start_matches('/'));
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Directory);
        header.set_size(0);
        header.set_mode(0o700);
        tar.append_data(&mut header, place, std::io::empty())?;
        for (file, name) in files {
            add(tar, file, &place.join(name)).with_context(|| format!("read {}", file.display()))?;
        }
        Ok(())
    })
}

fn add(tar: &mut flow::Archive, file: &Path, to: &Path) -> Result<()> {
    let found = fs_err::metadata(file)?;
    if found.is_dir() {
        tar.append_dir_all(to, file)?;
    } else if found.is_file() && found.len() > 0 {
        tar.append_path_with_name(file, to)?;
    } else {
        // A pipe, or a file of the kernel's: how long it is, is known at its end.
        let mut spool = tempfile::tempfile().context("make a temporary file")?;
        std::io::copy(&mut fs_err::File::open(file)?, &mut spool)?;
        std::io::Seek::rewind(&mut spool)?;
        tar.append_file(to, &mut spool)?;
    }
    Ok(())
}

/// The one file of an archive, beside its place: what is there stays until all of it has come. A pipe or a device has
/// nothing to lose.
fn receive(archive: impl std::io::Read, to: &Path) -> Result<Option<NamedTempFile>> {
    let mut archive = tar::Archive::new(archive);
    let mut entry = archive.entries()?.next().context("the engine sent nothing")??;
    let dir = to.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs_err::create_dir_all(dir)?;
    if to.exists() && !to.is_file() {
        std::io::copy(&mut entry, &mut fs_err::File::create(to)?)?;
        return Ok(None);
    }
    // As a file that is made anew, or as the one that was there.
    let mode = std::fs::metadata(to).map_or(0o666, |old| old.permissions().mode());
    let permissions = std::fs::Permissions::from_mode(mode);
    let mut file = tempfile::Builder::new().permissions(permissions).tempfile_in(dir)?;
    std::io::copy(&mut entry, &mut file)?;
    Ok(Some(file))
}

fn keep(file: Option<NamedTempFile>, to: &Path) -> Result<()> {
    // By a link the user means what it leads to.
    let to = std::fs::canonicalize(to).unwrap_or_else(|_| to.to_owned());
    file.map_or(Ok(()), |file| Ok(file.persist(to).map(drop)?))
}
