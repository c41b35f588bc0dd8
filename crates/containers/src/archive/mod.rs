//! Archives of images: Docker's (`docker save`), the OCI's as a file or as a directory.
//!
//! All that can be said against one without reading its layers is said here, before any node is touched.
//! The layers' own digests are checked by containerd, as they arrive.

mod docker;
mod files;
mod layout;

use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::containerd::Blob;
use crate::oci::{Config, Descriptor};
use crate::reference;
use files::Files;
pub use files::unpack;

pub struct Archive {
    files: Files,
    pub images: Vec<Image>,
}

/// One image of an archive, for the nodes' processor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Full names, at least one.
    pub names: Vec<String>,
    pub manifest: (Descriptor, Vec<u8>),
    pub config: (Descriptor, Vec<u8>),
    /// Each with its place in the archive.
    pub layers: Vec<(Descriptor, String)>,
    /// Of the layers, unpacked.
    pub diff_ids: Vec<String>,
}

impl Archive {
    pub fn open(path: &Path) -> Result<Archive> {
        let shown = || format!("{} is no archive of images", path.display());
        Archive::of(Files::open(path).with_context(shown)?).with_context(shown)
    }

    /// `name` is for messages.
    pub fn read(name: &str, source: impl Read) -> Result<Archive> {
        let shown = || format!("{name} is no archive of images");
        Archive::of(Files::read_all(source).with_context(shown)?).with_context(shown)
    }

    fn of(files: Files) -> Result<Archive> {
        let mut images = match files.document("index.json")? {
            Some(index) => layout::images(&files, &index)?,
            None => Vec::new(),
        };
        if images.is_empty() {
            images = match files.document("manifest.json")? {
                Some(list) => docker::images(&files, &list)?,
                None if files.size("index.json").is_none() => {
                    bail!("it has neither index.json (OCI) nor manifest.json (Docker)")
                }
                None => bail!("none of its images has a name"),
            };
        }
        if images.is_empty() {
            bail!("it has no images");
        }
        Ok(Archive { files, images })
    }

    /// Where the bytes of a layer are.
    pub fn blob(&self, place: &str) -> Result<Blob> {
        self.files.blob(place)
    }

    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.images.iter().flat_map(|i| &i.names)
    }
}

/// The names as containerd keeps them.
fn full_names<'a>(names: impl Iterator<Item = &'a str>) -> Result<Vec<String>> {
    let mut full = names.map(reference::normalise).collect::<Result<Vec<_>, _>>()?;
    full.sort();
    full.dedup();
    Ok(full)
}

fn diff_ids(config: &[u8], layers: usize) -> Result<Vec<String>> {
    let config: Config = serde_json::from_slice(config).context("read the image's configuration")?;
    let ids = config.rootfs.diff_ids;
    if ids.len() != layers {
        bail!("its configuration names {} layers, but it has {layers}", ids.len());
    }
    Ok(ids)
}
