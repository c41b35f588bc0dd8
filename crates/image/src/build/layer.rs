//! The one layer of a container image, as a tar archive that is the same on every machine.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tar::{EntryType, Header};

/// Something in a layer.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Node {
    Dir { mode: u32 },
    File { source: PathBuf, mode: u32 },
    Text { content: String },
    Link { target: String },
}

/// Path (without leading slash) → what is there. Parent directories need not be named.
#[derive(Debug, Clone, Default)]
pub struct Layer(BTreeMap<String, Node>);

impl Layer {
    pub fn dir(&mut self, path: &str, mode: u32) -> &mut Self {
        self.put(path, Node::Dir { mode })
    }

    pub fn program(&mut self, path: &str, source: impl Into<PathBuf>) -> &mut Self {
        self.put(path, Node::File { source: source.into(), mode: 0o755 })
    }

    pub fn file(&mut self, path: &str, source: impl Into<PathBuf>) -> &mut Self {
        self.put(path, Node::File { source: source.into(), mode: 0o644 })
    }

    pub fn text(&mut self, path: &str, content: &str) -> &mut Self {
        self.put(path, Node::Text { content: content.into() })
    }

    pub fn link(&mut self, path: &str, target: &str) -> &mut Self {
        self.put(path, Node::Link { target: target.into() })
    }

    fn put(&mut self, path: &str, node: Node) -> &mut Self {
        self.0.insert(path.trim_start_matches('/').to_owned(), node);
        self
    }

    /// Sorted, owned by root, and with no times in it: the checksum depends on the content alone.
    pub fn write(&self, to: impl Write) -> Result<()> {
        let mut tar = tar::Builder::new(to);
        let mut made = BTreeSet::new();
        for (path, node) in &self.0 {
            for parent in parents(path) {
                if !self.0.contains_key(parent) && made.insert(parent.to_owned()) {
                    append(&mut tar, parent, &Node::Dir { mode: 0o755 })?;
                }
            }
            append(&mut tar, path, node).with_context(|| format!("adding {path} to an image layer"))?;
        }
        tar.into_inner()?.flush()?;
        Ok(())
    }
}

/// `a/b/c` → `a`, `a/b`.
fn parents(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at])
}

fn append(tar: &mut tar::Builder<impl Write>, path: &str, node: &Node) -> Result<()> {
    let mut header = Header::new_gnu();
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    match node {
        Node::Dir { mode } => {
            header.set_entry_type(EntryType::Directory);
            header.set_mode(*mode);
            header.set_size(0);
            tar.append_data(&mut header, format!("{path}/"), std::io::empty())?;
        }
        Node::Link { target } => {
            header.set_entry_type(EntryType::Symlink);
            header.set_mode(0o777);
            header.set_size(0);
            tar.append_link(&mut header, path, Path::new(target))?;
        }
        Node::Text { content } => {
            header.set_mode(0o644);
            header.set_size(content.len() as u64);
            tar.append_data(&mut header, path, content.as_bytes())?;
        }
        Node::File { source, mode } => {
            let file = fs_err::File::open(source)?;
            header.set_mode(*mode);
            header.set_size(file.metadata()?.len());
            tar.append_data(&mut header, path, file)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents_come_first_and_once_and_nothing_depends_on_the_machine() {
        let dir = tempfile::tempdir().unwrap();
        let source = dir.path().join("program");
        std::fs::write(&source, "#!").unwrap();
        let mut layer = Layer::default();
        layer
            .link("/usr/bin/link", "tool")
            .program("usr/bin/tool", &source)
            .text("etc/passwd", "root")
            .dir("tmp", 0o1777);
        let mut tar = Vec::new();
        layer.write(&mut tar).unwrap();
        let mut archive = tar::Archive::new(&tar[..]);
        let found: Vec<_> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let header = entry.header();
                assert_eq!((header.mtime().unwrap(), header.uid().unwrap()), (0, 0));
                (entry.path().unwrap().display().to_string(), header.mode().unwrap())
            })
            .collect();
        let expected = [
            ("etc/", 0o755),
            ("etc/passwd", 0o644),
            ("tmp/", 0o1777),
            ("usr/", 0o755),
            ("usr/bin/", 0o755),
            ("usr/bin/link", 0o777),
            ("usr/bin/tool", 0o755),
        ];
        assert_eq!(found, expected.map(|(path, mode)| (path.to_owned(), mode)));
        let mut again = Vec::new();
        layer.write(&mut again).unwrap();
        assert_eq!(tar, again);
    }
}
