//! What `node-image list` shows.

use anyhow::Result;

use crate::store::Store;

/// One line of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub name: String,
    pub kubernetes: String,
    /// Bytes on disk.
    pub size: u64,
    /// RFC 3339, UTC.
    pub built_at: String,
}

/// The images of a store, newest Kubernetes first.
pub fn rows(store: &Store) -> Result<Vec<Row>> {
    let row = |image: crate::NodeImage| Row {
        name: image.name,
        kubernetes: image.manifest.kubernetes,
        size: image.manifest.size,
        built_at: image.manifest.built_at,
    };
    Ok(store.list()?.into_iter().map(row).collect())
}

/// Bytes as a person reads them: `83 MB`, `1.4 GB`.
pub fn human_size(bytes: u64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    if unit > 0 && value < 9.95 {
        format!("{value:.1} {}", units[unit])
    } else {
        format!("{value:.0} {}", units[unit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_two_or_three_digits() {
        let cases = [
            (0, "0 B"),
            (999, "999 B"),
            (1_000, "1.0 kB"),
            (83_456_789, "83 MB"),
            (999_600_000, "1.0 GB"),
            (1_440_000_000, "1.4 GB"),
            (12_000_000_000, "12 GB"),
        ];
        for (bytes, text) in cases {
            assert_eq!(human_size(bytes), text);
        }
    }
}
