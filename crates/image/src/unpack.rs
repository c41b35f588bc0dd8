//! Archives from elsewhere, unpacked below one directory.

use std::io::Read;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, bail};
use tar::EntryType;

use crate::bounds::Room;

/// Unpacks what `check` lets pass; it is asked before anything of an entry is written. Extended attributes are left
/// out, as in what we write: a capability of a file is one.
pub fn unpack(
    source: impl Read,
    to: &Path,
    room: &Room,
    mut check: impl FnMut(&Path, EntryType) -> Result<()>,
) -> Result<()> {
    fs_err::create_dir_all(to)?;
    let to = fs_err::canonicalize(to)?;
    let mut tar = tar::Archive::new(room.bound(source));
    tar.set_preserve_permissions(true);
    tar.set_preserve_ownerships(true);
    // Made on the way where they are needed; what they shall be like comes last, when they are full.
    let mut directories = Vec::new();
    for entry in tar.entries()? {
        let mut entry = entry?;
        let (path, kind) = (plain(&entry.path()?)?, entry.header().entry_type());
        if kind.is_pax_global_extensions() {
            continue;
        }
        if kind.is_character_special() || kind.is_block_special() || kind.is_fifo() {
            bail!("{} is neither a file nor a link nor a directory", path.display())
        }
        check(&path, kind)?;
        if kind.is_dir() {
            directories.push((path, entry));
        } else {
            entry.unpack_in(&to).with_context(|| path.display().to_string())?;
        }
    }
    directories.sort_by(|a, b| b.0.cmp(&a.0));
    for (path, mut entry) in directories {
        entry.unpack_in(&to).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

/// Without dots. What leads out of the directory is refused, not passed over.
fn plain(path: &Path) -> Result<PathBuf> {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => plain.push(name),
            Component::CurDir => {}
            _ => bail!("{} leads out of the image", path.display()),
        }
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_inside() {
        assert_eq!(plain(Path::new("./rootfs/./a")).expect("a path"), Path::new("rootfs/a"));
        for bad in ["/rootfs", "rootfs/../x", ".."] {
            assert!(plain(Path::new(bad)).is_err(), "{bad}");
        }
    }
}
