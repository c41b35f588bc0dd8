//! What an image from elsewhere must be: what its record says, and nothing else.

use std::path::Path;

use anyhow::{Result, bail};

use crate::check::{Damage, Damaged};
use crate::manifest::{FILES, Files, MANIFEST, Manifest};
use crate::registry::parts::RECORD;
use crate::walk;

/// Takes the record out of the root of an image that came in layers. It is looked at before it is moved: a link
/// would have us move the files that it leads to.
pub fn take_record(dir: &Path) -> Result<()> {
    let record = dir.join("rootfs").join(RECORD);
    let Ok(found) = std::fs::symlink_metadata(&record) else { return Ok(()) };
    if !found.is_dir() {
        bail!("its /{RECORD} is not a directory")
    }
    only(&record, &[(MANIFEST, false), (FILES, false)])?;
    for name in [MANIFEST, FILES] {
        fs_err::rename(record.join(name), dir.join(name))?;
    }
    Ok(fs_err::remove_dir(&record)?)
}

/// The directory of an image holds the record and the root, each of its kind. Which digests of registries it stands
/// for is not for the image to say.
pub fn top(dir: &Path) -> Result<()> {
    only(dir, &[(MANIFEST, false), (FILES, false), ("rootfs", true)])
}

/// Nothing but these, a directory or a file.
fn only(dir: &Path, known: &[(&str, bool)]) -> Result<()> {
    for entry in fs_err::read_dir(dir)? {
        let entry = entry?;
        let (name, kind) = (entry.file_name(), entry.file_type()?);
        match known.iter().find(|(known, _)| name == **known) {
            Some((_, directory)) if kind.is_dir() == *directory && !kind.is_symlink() => {}
            Some((_, true)) => bail!("its {} is not a directory", name.display()),
            Some((_, false)) => bail!("its {} is not a file", name.display()),
            None => bail!("it holds {}, which is not part of a node image", name.display()),
        }
    }
    Ok(())
}

/// Every file is in the record.
pub fn listed(dir: &Path, manifest: &Manifest) -> Result<()> {
    let (files, rootfs) = (Files::read(dir)?, dir.join("rootfs"));
    let unknown = walk::tree(&rootfs)?.into_iter().find(|entry| !files.names(entry));
    match unknown {
        Some(entry) => {
            let (image, file) = (manifest.name.clone(), rootfs.join(entry.path));
            Err(Damaged { image, file, damage: Damage::Unlisted }.into())
        }
        None => Ok(()),
    }
}
