//! Locks of files that others hold for a moment.

use std::fs::{File, TryLockError};
use std::io;
use std::time::{Duration, Instant};

const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Waits, this thread and all that it does, but not for ever: `WouldBlock` says that somebody still has it.
pub fn within(limit: Duration, file: &File) -> io::Result<()> {
    let began = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(e)) => return Err(e),
            Err(TryLockError::WouldBlock) if began.elapsed() >= limit => {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOOK_AGAIN),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn not_for_ever() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let open = || File::open(file.path()).unwrap();
        let first = open();
        within(Duration::ZERO, &first).unwrap();
        let refused = within(Duration::from_millis(20), &open()).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        drop(first);
        // A neighbour test that forks at this moment has a copy of `first` until it executes a program.
        within(Duration::from_secs(30), &open()).unwrap();
    }
}
