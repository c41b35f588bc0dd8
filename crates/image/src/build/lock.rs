//! One build at a time in a cache.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use fs_err::os::unix::fs::OpenOptionsExt as _;
use std::fs::TryLockError;

/// Held until dropped; the kernel lets go of it when the process ends in any way.
pub struct Lock(#[allow(dead_code)] fs_err::File);

/// Waits for the lock; `waiting` is called once if somebody else has it. Polled, so that a cancelled build
/// leaves no thread behind that waits for ever.
pub async fn acquire(path: &Path, waiting: impl Fn()) -> Result<Lock> {
    let mut options = fs_err::OpenOptions::new();
    let file = options.create(true).append(true).mode(0o600).open(path)?;
    let mut told = false;
    loop {
        match file.file().try_lock() {
            Ok(()) => return Ok(Lock(file)),
            Err(TryLockError::Error(error)) => return Err(error.into()),
            Err(TryLockError::WouldBlock) => {
                if !std::mem::replace(&mut told, true) {
                    waiting();
                }
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[tokio::test]
    async fn the_second_waits_and_says_so_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let first = acquire(&path, || ()).await.unwrap();
        let told = AtomicU32::new(0);
        let count = || {
            told.fetch_add(1, Ordering::Relaxed);
        };
        assert!(tokio::time::timeout(Duration::from_millis(500), acquire(&path, count)).await.is_err());
        assert_eq!(told.load(Ordering::Relaxed), 1);
        drop(first);
        acquire(&path, count).await.unwrap();
    }
}
