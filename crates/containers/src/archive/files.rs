//! The files of an archive, without unpacking it: a tar file (compressed or not) or a directory.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::containerd::Blob;
use crate::oci::LONGEST_DOCUMENT;

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

pub enum Files {
    Tar { file: File, entries: HashMap<String, Entry> },
    Dir(PathBuf),
}

/// Where a file is in the archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    At { start: u64, size: u64 },
    Link(String),
}

impl Files {
    pub fn open(path: &Path) -> Result<Files> {
        if fs_err::metadata(path)?.is_dir() {
            return Ok(Files::Dir(path.to_owned()));
        }
        Files::tar(fs_err::File::open(path)?.into_parts().0)
    }

    /// What cannot be read twice is kept in a file without a name.
    pub fn read_all(mut source: impl Read) -> Result<Files> {
        let mut file = tempfile::tempfile().context("make a temporary file")?;
        io::copy(&mut source, &mut file).context("read the archive")?;
        file.rewind()?;
        Files::tar(file)
    }

    fn tar(mut file: File) -> Result<Files> {
        let mut magic = [0; 4];
        let length = read_up_to(&mut file, &mut magic)?;
        file.rewind()?;
        let magic = &magic[..length];
        if magic.starts_with(&GZIP) {
            return Files::unpacked(flate2::read::MultiGzDecoder::new(io::BufReader::new(file)));
        }
        if magic.starts_with(&ZSTD) {
            return Files::unpacked(zstd::Decoder::new(file)?);
        }
        let entries = index(&mut file)?;
        Ok(Files::Tar { file, entries })
    }

    fn unpacked(mut source: impl Read) -> Result<Files> {
        let mut file = tempfile::tempfile().context("make a temporary file")?;
        io::copy(&mut source, &mut file).context("decompress the archive")?;
        file.rewind()?;
        let entries = index(&mut file)?;
        Ok(Files::Tar { file, entries })
    }

    pub fn size(&self, path: &str) -> Option<u64> {
        match self {
            Files::Dir(dir) => std::fs::metadata(inside(dir, path)?).ok().map(|m| m.len()),
            Files::Tar { entries, .. } => resolve(entries, path).map(|(_, size)| size),
        }
    }

    /// A place to read the file from; each caller has its own.
    pub fn blob(&self, path: &str) -> Result<Blob> {
        let missing = || format!("{path} is missing");
        match self {
            Files::Dir(dir) => {
                let file = fs_err::File::open(inside(dir, path).with_context(missing)?)?.into_parts().0;
                Ok(Blob { file, start: 0 })
            }
            Files::Tar { file, entries } => {
                let (start, _) = resolve(entries, path).with_context(missing)?;
                // A descriptor of its own: duplicates of one share where they are in the file.
                let own = File::open(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(file)))
                    .context("open the archive again")?;
                Ok(Blob { file: own, start })
            }
        }
    }

    /// The whole of a small file; `None` where there is none.
    pub fn document(&self, path: &str) -> Result<Option<Vec<u8>>> {
        let Some(size) = self.size(path) else { return Ok(None) };
        if size > LONGEST_DOCUMENT {
            bail!("{path} has {size} bytes: that is no description of an image");
        }
        let mut blob = self.blob(path)?;
        blob.file.seek(SeekFrom::Start(blob.start))?;
        let mut data = Vec::new();
        blob.file.take(size).read_to_end(&mut data).with_context(|| format!("read {path}"))?;
        Ok(Some(data))
    }
}

/// Unpacks a tar file, compressed or not, that is not one of images.
pub fn unpack(source: &mut dyn Read, dir: &Path) -> Result<()> {
    let Files::Tar { mut file, .. } = Files::read_all(source)? else { bail!("it is a directory") };
    file.rewind()?;
    tar::Archive::new(file).unpack(dir).context("unpack it")
}

fn index(file: &mut File) -> Result<HashMap<String, Entry>> {
    let length = file.seek(SeekFrom::End(0))?;
    file.rewind()?;
    let mut entries = HashMap::new();
    let mut archive = tar::Archive::new(&mut *file);
    for entry in archive.entries_with_seek().context("read it as a tar file")? {
        let entry = entry.context("read it as a tar file")?;
        let path = clean(&entry.path().context("read the name of a file")?);
        let kind = entry.header().entry_type();
        let link = || Some(clean(&entry.link_name().ok()??));
        let found = match link() {
            Some(to) if kind.is_hard_link() => Entry::Link(to),
            Some(to) if kind.is_symlink() => Entry::Link(relative(&path, &to)),
            _ if kind.is_file() => {
                let (start, size) = (entry.raw_file_position(), entry.size());
                if start.checked_add(size).is_none_or(|end| end > length) {
                    bail!("it ends in the middle of {path}");
                }
                Entry::At { start, size }
            }
            _ => continue,
        };
        entries.insert(path, found);
    }
    if entries.is_empty() {
        bail!("it has no files");
    }
    Ok(entries)
}

/// `./a//b/../c` is `a/c`.
fn clean(path: &Path) -> String {
    let mut parts: Vec<String> = Vec::new();
    for part in path.components() {
        match part {
            std::path::Component::Normal(name) => parts.push(name.to_string_lossy().into_owned()),
            std::path::Component::ParentDir => drop(parts.pop()),
            _ => {}
        }
    }
    parts.join("/")
}

/// Where a symbolic link in the archive leads.
fn relative(link: &str, to: &str) -> String {
    let dir = link.rsplit_once('/').map_or("", |(dir, _)| dir);
    clean(&Path::new(dir).join(to))
}

fn resolve(entries: &HashMap<String, Entry>, path: &str) -> Option<(u64, u64)> {
    let mut path = clean(Path::new(path));
    // Links may be written in a circle.
    for _ in 0..8 {
        match entries.get(&path)? {
            Entry::At { start, size } => return Some((*start, *size)),
            Entry::Link(to) => path = to.clone(),
        }
    }
    None
}

/// Names come from the archive: they may not lead out of it.
fn inside(dir: &Path, path: &str) -> Option<PathBuf> {
    let plain = Path::new(path).components().all(|c| matches!(c, std::path::Component::Normal(_)));
    plain.then(|| dir.join(path))
}

fn read_up_to(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match file.read(&mut buffer[length..])? {
            0 => break,
            read => length += read,
        }
    }
    Ok(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_files_and_not_in_circles() {
        let at = Entry::At { start: 512, size: 3 };
        let entries = HashMap::from([
            ("a/layer.tar".to_owned(), at),
            ("b/layer.tar".to_owned(), Entry::Link(relative("b/layer.tar", "../a/layer.tar"))),
            ("c".to_owned(), Entry::Link("c".to_owned())),
        ]);
        assert_eq!(resolve(&entries, "./b/layer.tar"), Some((512, 3)));
        assert_eq!(resolve(&entries, "c"), None);
        assert_eq!(resolve(&entries, "d"), None);
    }

    #[test]
    fn no_name_leads_out_of_a_directory() {
        assert_eq!(inside(Path::new("/x"), "../etc/passwd"), None);
        assert_eq!(inside(Path::new("/x"), "/etc/passwd"), None);
        assert_eq!(inside(Path::new("/x"), "index.json"), Some("/x/index.json".into()));
    }
}
