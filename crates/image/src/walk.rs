//! One way to walk a tree: sorted, never following symbolic links, parents before children.

use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};

/// One thing in a tree.
pub struct Entry {
    /// Relative to the root of the walk.
    pub path: PathBuf,
    pub metadata: Metadata,
}

/// Everything below `root`, without `root` itself.
pub fn tree(root: &Path) -> io::Result<Vec<Entry>> {
    let mut found = Vec::new();
    descend(root, Path::new(""), &mut found)?;
    Ok(found)
}

fn descend(root: &Path, below: &Path, found: &mut Vec<Entry>) -> io::Result<()> {
    let mut names: Vec<_> = fs_err::read_dir(root.join(below))?
        .map(|entry| entry.map(|e| e.file_name()))
        .collect::<io::Result<_>>()?;
    names.sort();
    for name in names {
        let path = below.join(name);
        let metadata = fs_err::symlink_metadata(root.join(&path))?;
        let is_dir = metadata.is_dir();
        found.push(Entry { path: path.clone(), metadata });
        if is_dir {
            descend(root, &path, found)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorted_parents_first_and_links_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("b/c")).unwrap();
        std::fs::write(dir.path().join("b/c/file"), "").unwrap();
        std::os::unix::fs::symlink("b", dir.path().join("a")).unwrap();
        let paths: Vec<_> = tree(dir.path()).unwrap().into_iter().map(|e| e.path).collect();
        assert_eq!(paths, ["a", "b", "b/c", "b/c/file"].map(PathBuf::from));
    }
}
