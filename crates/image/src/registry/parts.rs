//! An image as layers: each file is in exactly one of them, so their order does not matter to us, and an engine
//! that puts them over one another gets the node's root.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use tar::{EntryType, Header};

use crate::manifest::{FILES, Files, MANIFEST};
use crate::store::NodeImage;
use crate::walk::{self, Entry};

/// Where an image has what is beside the root file system in our store.
pub(crate) const RECORD: &str = ".node-image";
const CONTENT: &str = "var/lib/containerd/io.containerd.content.v1.content";

/// Of about the same size but for the last, so that they are packed and sent at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// All but `/var`.
    System,
    /// `/var`, with the container images unpacked.
    State,
    /// The container images as they came.
    Images,
    /// What we know of all files.
    Record,
}

impl Part {
    pub const ALL: [Part; 4] = [Part::System, Part::State, Part::Images, Part::Record];

    pub fn name(self) -> &'static str {
        match self {
            Part::System => "system",
            Part::State => "state",
            Part::Images => "images",
            Part::Record => "record",
        }
    }

    fn of(path: &Path) -> Part {
        match path {
            path if path.starts_with(CONTENT) => Part::Images,
            path if path.starts_with("var") => Part::State,
            _ => Part::System,
        }
    }
}

/// What of the image is in this part: files, and the directories that lead to them. A directory that an engine
/// has to make up would hide what the layer below says of it.
fn chosen(entries: &[Entry], part: Part) -> Vec<&Entry> {
    let own = |e: &&Entry| Part::of(&e.path) == part;
    let above: BTreeSet<&Path> =
        entries.iter().filter(own).flat_map(|e| e.path.ancestors().skip(1)).collect();
    entries.iter().filter(|e| own(e) || above.contains(e.path.as_path())).collect()
}

/// Writes a part as a tar archive that depends on the image's content alone. `wrote` is told how many bytes of
/// files went in.
pub fn pack<W: Write>(image: &NodeImage, part: Part, to: W, wrote: &dyn Fn(u64)) -> Result<W> {
    let mut tar = tar::Builder::new(to);
    tar.follow_symlinks(false);
    // Whether a file has holes is the disk's business.
    tar.sparse(false);
    if part == Part::Record {
        directory(&mut tar, Path::new(RECORD), 0o755, (0, 0))?;
        for name in [MANIFEST, FILES] {
            let text = fs_err::read(image.dir.join(name))?;
            let mut header = plain(EntryType::Regular, 0o644, text.len() as u64);
            tar.append_data(&mut header, Path::new(RECORD).join(name), &*text)?;
        }
        return Ok(tar.into_inner()?);
    }
    let rootfs = image.rootfs();
    for entry in chosen(&recorded(image)?, part) {
        use std::os::unix::fs::MetadataExt as _;
        let (path, metadata) = (&entry.path, &entry.metadata);
        if metadata.is_dir() {
            // When something was last put into it is nobody's business either.
            directory(&mut tar, path, metadata.mode() & 0o7777, (metadata.uid(), metadata.gid()))
        } else {
            tar.append_path_with_name(rootfs.join(path), path)
        }
        .with_context(|| format!("packing /{}", path.display()))?;
        if metadata.is_file() {
            wrote(metadata.len());
        }
    }
    Ok(tar.into_inner()?)
}

/// What is not in the image's list would be refused by those who take it.
fn recorded(image: &NodeImage) -> Result<Vec<Entry>> {
    let files = Files::read(&image.dir)?;
    Ok(walk::tree(&image.rootfs())?.into_iter().filter(|entry| files.names(entry)).collect())
}

/// Bytes of the files in a part.
pub fn size(image: &NodeImage, part: Part) -> Result<u64> {
    let entries = recorded(image)?;
    let files = chosen(&entries, part).into_iter().filter(|e| e.metadata.is_file());
    Ok(files.map(|e| e.metadata.len()).sum())
}

fn directory(
    tar: &mut tar::Builder<impl Write>,
    path: &Path,
    mode: u32,
    owner: (u32, u32),
) -> std::io::Result<()> {
    let mut header = plain(EntryType::Directory, mode, 0);
    header.set_uid(owner.0.into());
    header.set_gid(owner.1.into());
    tar.append_data(&mut header, path.join(""), std::io::empty())
}

fn plain(kind: EntryType, mode: u32, size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_in_one_part() {
        for (path, part) in [
            ("usr/bin/kubelet", Part::System),
            ("variety", Part::System),
            ("var/lib/dpkg", Part::State),
            ("var/lib/containerd/io.containerd.metadata.v1.bolt/meta.db", Part::State),
            ("var/lib/containerd/io.containerd.content.v1.content/blobs/sha256/0", Part::Images),
        ] {
            assert_eq!(Part::of(Path::new(path)), part, "{path}");
        }
    }

    #[test]
    fn a_part_brings_the_directories_above_its_files() {
        let dir = tempfile::tempdir().expect("a directory");
        let blobs = dir.path().join(CONTENT).join("blobs");
        std::fs::create_dir_all(&blobs).expect("directories");
        std::fs::create_dir_all(dir.path().join("var/tmp")).expect("directories");
        std::fs::write(blobs.join("0"), "x").expect("a file");
        std::fs::write(dir.path().join("version"), "x").expect("a file");
        let entries = walk::tree(dir.path()).expect("a tree");
        let paths = |part| -> Vec<String> {
            chosen(&entries, part).iter().map(|e| e.path.display().to_string()).collect()
        };
        assert_eq!(paths(Part::System), ["version"]);
        assert_eq!(paths(Part::State), ["var", "var/lib", "var/lib/containerd", "var/tmp"]);
        let images = paths(Part::Images);
        assert_eq!((&*images[0], images.last().map(String::len)), ("var", Some(CONTENT.len() + 8)));
    }
}
