//! How an image comes into the store, from wherever: unpacked beside it, verified, renamed into place.

use std::io::{BufReader, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::bounds::Room;
use crate::hash;
use crate::manifest::{MANIFEST, Manifest};
use crate::registry::RegistryError;
use crate::store::{IMPORTING, NodeImage, Store};
use crate::strict;
use crate::unpack;

/// An image on its way. What does not arrive leaves nothing.
pub struct Arrival {
    store: Store,
    dir: TempDir,
    _lock: fs_err::File,
}

impl Arrival {
    pub fn new(store: &Store) -> Result<Arrival> {
        let lock = store.exclusive()?;
        let dir = tempfile::Builder::new().prefix(IMPORTING).tempdir_in(store.images_dir())?;
        Ok(Arrival { store: store.clone(), dir, _lock: lock })
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Where layers are unpacked.
    pub fn rootfs(&self) -> PathBuf {
        self.dir.path().join("rootfs")
    }

    /// Verifies what was unpacked, and makes it an image of the store.
    pub fn adopt(self, digest: Option<&str>) -> Result<NodeImage> {
        let dir = self.dir.path();
        strict::take_record(dir)?;
        strict::top(dir)?;
        let Some(mut manifest) = Manifest::read(dir)? else {
            bail!("it holds no {MANIFEST}: it is not a node image of manykube's")
        };
        // The name becomes a path below: a foreign file must not choose where it lands.
        if manifest.name.is_empty() || manifest.name.starts_with('.') || manifest.name.contains('/') {
            bail!("it names itself {:?}, which is not a node image's name", manifest.name)
        }
        if manifest.architecture != crate::build::architecture() {
            bail!(
                "it is for {} machines, and this is {}",
                manifest.architecture,
                crate::build::architecture()
            )
        }
        match self.store.open(&manifest.name)? {
            // A file is as good as any other that was made of the same; a digest means these very bytes.
            Some(there) if digest.is_none() || there.manifest.files_sha256 == manifest.files_sha256 => {
                digest.map_or(Ok(()), |digest| there.add_digest(digest))?;
                return Ok(there);
            }
            Some(_) => {
                manifest.name += &format!("-{}", &manifest.files_sha256.get(..12).unwrap_or_default());
                manifest.write(dir)?;
            }
            None => {}
        }
        let unpacked = NodeImage { name: manifest.name.clone(), dir: dir.to_owned(), manifest };
        unpacked.verify_arrival()?;
        digest.map_or(Ok(()), |digest| unpacked.add_digest(digest))?;
        unpacked.mark_imported()?;
        let place = self.store.images_dir().join(&unpacked.name);
        fs_err::rename(self.dir.keep(), &place)?;
        Ok(NodeImage { dir: place, ..unpacked })
    }
}

/// Is there room for so many bytes? Asked before any of them is fetched.
pub fn room(store: &Store, needed: u64) -> Result<()> {
    store.make_images_dir()?;
    let dir = store.images_dir();
    let disk =
        rustix::fs::statvfs(&dir).with_context(|| format!("looking at the disk of {}", dir.display()))?;
    let free = disk.f_bavail * disk.f_frsize;
    if free < needed {
        return Err(RegistryError::NoSpace { dir, needed, free }.into());
    }
    Ok(())
}

/// Unpacks a layer, whichever way it is compressed; the digest of the file, and whether it could be unpacked.
pub fn unpack_file(
    file: &Path,
    rootfs: &Path,
    room: &Room,
    progress: &dyn Fn(u64),
) -> Result<(String, Result<()>)> {
    let source =
        Told { inner: fs_err::File::open(file)?, tee: hash::Tee::new(std::io::sink()), done: 0, progress };
    let mut source = BufReader::with_capacity(1 << 20, source);
    let unpacked = unpack_layer(&mut source, rootfs, room);
    // To the end, which an archive may come before.
    std::io::copy(&mut source, &mut std::io::sink())?;
    let (_, hex, _) = source.into_inner().tee.finish();
    Ok((format!("sha256:{hex}"), unpacked))
}

/// Unpacks one layer. Ours say of each file once what it is, so there is nothing that one takes away from another.
fn unpack_layer(source: &mut dyn std::io::BufRead, rootfs: &Path, room: &Room) -> Result<()> {
    let magic = source.fill_buf()?;
    let plain: Box<dyn Read + '_> = if magic.starts_with(&[0x1f, 0x8b]) {
        Box::new(flate2::bufread::MultiGzDecoder::new(source))
    } else if magic.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        Box::new(zstd::Decoder::with_buffer(source)?)
    } else {
        Box::new(source)
    };
    unpack::unpack(plain, rootfs, room, |_, _| Ok(()))
}

struct Told<'a> {
    inner: fs_err::File,
    tee: hash::Tee<std::io::Sink>,
    done: u64,
    progress: &'a dyn Fn(u64),
}

impl Read for Told<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.tee.write_all(&buffer[..read])?;
        self.done += read as u64;
        (self.progress)(self.done);
        Ok(read)
    }
}

/// Takes an image from what an engine hands out (`docker save`, in any of its shapes): an archive of layers and
/// documents. What is a layer is seen by what it begins with. `size` is what the image's label says.
pub fn from_engine(
    store: &Store,
    source: impl Read,
    (digest, size): (&str, u64),
    progress: &dyn Fn(u64),
) -> Result<NodeImage> {
    let arrival = Arrival::new(store)?;
    let rootfs = arrival.rootfs();
    let (room, mut done) = (Room::of(size), 0);
    let mut outer = tar::Archive::new(source);
    for entry in outer.entries().context("reading what the engine sends")? {
        let entry = entry.context("reading what the engine sends")?;
        if !entry.header().entry_type().is_file() || entry.size() == 0 {
            continue;
        }
        let (size, path) = (entry.size(), entry.path().map(|p| p.display().to_string()).unwrap_or_default());
        let mut entry = BufReader::with_capacity(1 << 20, entry);
        if is_layer(std::io::BufRead::fill_buf(&mut entry)?) {
            unpack_layer(&mut entry, &rootfs, &room)
                .with_context(|| format!("unpacking the engine's {path}"))?;
        }
        done += size;
        progress(done);
    }
    arrival.adopt(Some(digest))
}

/// An archive, compressed or not, as opposed to a document or a version number.
fn is_layer(begin: &[u8]) -> bool {
    let tar = begin.get(257..262) == Some(b"ustar");
    tar || begin.starts_with(&[0x1f, 0x8b]) || begin.starts_with(&[0x28, 0xb5, 0x2f, 0xfd])
}
