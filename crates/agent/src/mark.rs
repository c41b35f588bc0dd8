//! Has a file changed?

use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What makes two looks at a file different.
pub type Mark = (u64, i64, i64, u64);

pub fn mark(path: &Path) -> Option<Mark> {
    let m = std::fs::metadata(path).ok()?;
    Some((m.ino(), m.mtime(), m.mtime_nsec(), m.len()))
}
