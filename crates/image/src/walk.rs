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
    tree_without(root, &|_| false)
}

/// The same without the entries that are `left_out`, and what is below them.
pub fn tree_without(root: &Path, left_out: &dyn Fn(&Path) -> bool) -> io::Result<Vec<Entry>> {
    let mut found = Vec::new();
    descend(root, Path::new(""), left_out, &mut found)?;
    Ok(found)
}

fn descend(
    root: &Path,
    below: &Path,
    left_out: &dyn Fn(&Path) -> bool,
    found: &mut Vec<Entry>,
) -> io::Result<()> {
    let mut names: Vec<_> = fs_err::read_dir(root.join(below))?
        .map(|entry| entry.map(|e| e.file_name()))
        .collect::<io::Result<_>>()?;
    names.sort();
    for path in names.into_iter().map(|name| below.join(name)).filter(|path| !left_out(path)) {
        let metadata = fs_err::symlink_metadata(root.join(&path))?;
        let is_dir = metadata.is_dir();
        found.push(Entry { path: path.clone(), metadata });
        if is_dir {
            descend(root, &path, left_out, found)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_not_walked() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("b/c/d")).unwrap();
        let found = tree_without(dir.path(), &|path| path == Path::new("b/c")).unwrap();
        assert_eq!(found.into_iter().map(|e| e.path).collect::<Vec<_>>(), [Path::new("b")]);
    }

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
