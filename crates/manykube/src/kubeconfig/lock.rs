//! client-go's lock: `<file>.lock`, made exclusively. kubectl does not wait for it, but gives up: so do not hold it long.
//!
//! Ours bears our name and is locked by the kernel too, so that one whose owner is dead is known as such.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use engine::crash;

/// Nobody holds it for longer than it takes to write a small file: one that is older is nobody's.
const PATIENCE: Duration = Duration::from_secs(10);
const INTERVAL: Duration = Duration::from_millis(50);
const OURS: &str = "manykube";

pub struct FileLock {
    path: PathBuf,
    /// The kernel's lock, gone when we are.
    _file: File,
}

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
        match make(&path) {
            Ok(file) => {
                crash::place("kubeconfig-lock", "after");
                return Ok(FileLock { path, _file: file });
            }
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            Err(e) => bail!("{}: {e}", path.display()),
        }
        let waited = begin.elapsed() >= patience;
        match take_from_the_dead(&path, waited) {
            Ok(true) => {}
            Ok(false) if waited => {
                bail!("{} is held by another program; remove it if none is running", path.display())
            }
            Ok(false) => std::thread::sleep(INTERVAL),
            Err(e) => bail!("{}: {e}", path.display()),
        }
    }
}

fn make(path: &Path) -> io::Result<File> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.lock()?;
    write!(file, "{OURS} {}", std::process::id())?;
    Ok(file)
}

/// Removes the lock if nobody can hold it any more; whether it is worth trying again at once. What is not
/// ours is taken for dead only when it has been there for long.
fn take_from_the_dead(path: &Path, waited: bool) -> io::Result<bool> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(true),
        Err(e) => return Err(e),
    };
    if file.try_lock().is_err() {
        return Ok(false);
    }
    let mut owner = String::new();
    let _ = file.read_to_string(&mut owner);
    let old = file.metadata()?.modified()?.elapsed().is_ok_and(|age| age >= PATIENCE);
    let dead = owner.starts_with(OURS) || (waited && old);
    // Whoever came before us may have put a new one in its place: that one is not the dead one's.
    let same = std::fs::metadata(path).is_ok_and(|m| file.metadata().is_ok_and(|f| f.ino() == m.ino()));
    if dead && same {
        std::fs::remove_file(path)?;
    }
    Ok(dead || !same)
}

impl Drop for FileLock {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
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

    #[test]
    fn the_dead_do_not_hold_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.lock");
        std::fs::write(&path, "manykube 4294967295").unwrap();
        drop(acquire(path.clone(), Duration::ZERO).unwrap());
        // kubectl's has no name: it is believed for a while.
        std::fs::write(&path, "").unwrap();
        assert!(acquire(path.clone(), Duration::ZERO).is_err());
        let long_ago = std::time::SystemTime::now() - 2 * PATIENCE;
        File::options().write(true).open(&path).unwrap().set_modified(long_ago).unwrap();
        acquire(path, Duration::ZERO).unwrap();
    }
}
