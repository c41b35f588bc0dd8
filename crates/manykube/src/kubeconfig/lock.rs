//! client-go's lock: `<file>.lock`, made exclusively. kubectl does not wait for it, but gives up: so do not hold it long.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

const PATIENCE: Duration = Duration::from_secs(10);
const INTERVAL: Duration = Duration::from_millis(50);

pub struct FileLock(PathBuf);

impl FileLock {
    pub fn acquire(file: &Path) -> Result<FileLock> {
        let mut name = file.as_os_str().to_owned();
        name.push(".lock");
        acquire(PathBuf::from(name), PATIENCE)
    }
}

fn acquire(path: PathBuf, patience: Duration) -> Result<FileLock> {
    let begin = Instant::now();
    loop {
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(_) => return Ok(FileLock(path)),
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists && begin.elapsed() < patience => {
                std::thread::sleep(INTERVAL);
            }
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
                bail!("{} is held by another program; remove it if none is running", path.display())
            }
            Err(e) => bail!("{}: {e}", path.display()),
        }
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exclusive_bounded_and_gone_afterwards() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.lock");
        let held = acquire(path.clone(), Duration::ZERO).unwrap();
        assert!(acquire(path.clone(), Duration::from_millis(60)).is_err());
        drop(held);
        assert!(!path.exists());
        acquire(path, Duration::ZERO).unwrap();
    }
}
