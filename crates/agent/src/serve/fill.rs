//! Fills the node's own disk on purpose.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use model::node_spec::{DISK_DIR, FILL_NAME};
use rustix::fs::{FallocateFlags, fallocate, fstatvfs};
use rustix::io::Errno;

fn file() -> PathBuf {
    Path::new(DISK_DIR).join(FILL_NAME)
}

/// Leaves so many bytes.
pub fn fill(leave: u64) -> Result<()> {
    let device =
        |dir: &Path| std::fs::metadata(dir).map(|m| m.dev()).with_context(|| dir.display().to_string());
    let (dir, above) = (Path::new(DISK_DIR), Path::new(DISK_DIR).parent().context("a directory above")?);
    ensure!(device(dir)? != device(above)?, "this node has no disk of its own");
    let file = fs_err::OpenOptions::new().write(true).create(true).truncate(false).open(file())?;
    let (mut length, mut most) = (file.metadata()?.len(), u64::MAX);
    loop {
        let fs = fstatvfs(&file).context("look at the disk")?;
        let block = fs.f_frsize.max(1);
        let more = (fs.f_bavail * block).saturating_sub(leave).min(most) / block * block;
        if more == 0 {
            return Ok(());
        }
        match fallocate(&file, FallocateFlags::empty(), length, more) {
            Ok(()) => length += more,
            // The file system needs space to note so much as well.
            Err(Errno::NOSPC) => most = more / 2,
            Err(e) => bail!("fill the disk: {e}"),
        }
    }
}

pub fn free() -> Result<()> {
    match std::fs::remove_file(file()) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(e).context("give the disk back"),
        _ => Ok(()),
    }
}
