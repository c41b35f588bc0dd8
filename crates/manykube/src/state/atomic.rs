//! Files that are either as they were or as they are to be, whatever happens in between.

use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

/// Writes beside the file, makes it durable, and renames.
pub fn write(path: &Path, data: &[u8], mode: u32) -> io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    fs_err::create_dir_all(dir)?;
    let mut temp = tempfile::Builder::new()
        .prefix(".tmp-")
        .permissions(std::fs::Permissions::from_mode(mode))
        .tempfile_in(dir)?;
    temp.write_all(data)?;
    keep_owner(path, temp.path());
    temp.as_file().sync_all()?;
    temp.persist(path).map_err(|e| e.error)?;
    // The rename itself is durable only when the directory is.
    fs_err::File::open(dir)?.sync_all()
}

/// A file stays its owner's. A new one that is made by sudo in the caller's own directory is theirs.
fn keep_owner(path: &Path, temp: &Path) {
    let dir = path.parent().unwrap_or(Path::new("."));
    let Ok(like) = std::fs::metadata(path).or_else(|_| std::fs::metadata(dir)) else { return };
    // Only root may give files away, and only root needs to.
    let _ = std::os::unix::fs::chown(temp, Some(like.uid()), Some(like.gid()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_and_leaves_nothing_beside() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sub/file");
        write(&path, b"one", 0o600).unwrap();
        write(&path, b"two", 0o600).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(dir.path().join("sub")).unwrap().count(), 1);
    }
}
