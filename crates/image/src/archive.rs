//! Images as one file, for machines without a network: a `.tar.zst` of the image's directory.

use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::arrival::{self, Arrival};
use crate::bounds::Room;
use crate::manifest::{FILES, Files, MANIFEST, Manifest};
use crate::store::{NodeImage, Store};
use crate::{unpack, walk};

/// Is told how many bytes are done, of how many (0: not known).
pub type Progress = dyn Fn(u64, u64) + Send + Sync;

pub fn export(image: &NodeImage, file: &Path, progress: &Progress) -> Result<()> {
    // Beside the destination and renamed: an interrupted export leaves no file that looks whole.
    let parent = file.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let temporary = tempfile::Builder::new().prefix(".export-").tempfile_in(parent)?;
    write(image, temporary.as_file(), progress)?;
    temporary.as_file().sync_all()?;
    temporary.persist(file)?;
    Ok(())
}

pub fn write(image: &NodeImage, to: impl Write, progress: &Progress) -> Result<()> {
    let mut compressor = zstd::Encoder::new(BufWriter::new(to), 3)?;
    compressor.multithread(std::thread::available_parallelism().map_or(1, |n| n.get() as u32))?;
    let mut tar = tar::Builder::new(compressor);
    tar.follow_symlinks(false);
    // The manifest comes first, so that an import knows at once what it is about to unpack.
    for name in [MANIFEST, FILES] {
        tar.append_path_with_name(image.dir.join(name), name)?;
    }
    let mut done = 0;
    tar.append_path_with_name(image.rootfs(), "rootfs")?;
    // What is not in the list would be refused where it is imported.
    let files = Files::read(&image.dir)?;
    for entry in walk::tree(&image.rootfs())?.into_iter().filter(|entry| files.names(entry)) {
        tar.append_path_with_name(image.rootfs().join(&entry.path), Path::new("rootfs").join(&entry.path))?;
        if entry.metadata.is_file() {
            done += entry.metadata.len();
            progress(done, image.manifest.size);
        }
    }
    tar.into_inner()?.finish()?.flush()?;
    Ok(())
}

pub fn import(store: &Store, file: &Path, progress: &Progress) -> Result<NodeImage> {
    let total = fs_err::metadata(file)?.len();
    let arrival = Arrival::new(store)?;
    let source = Counted { inner: fs_err::File::open(file)?, done: 0, total, progress };
    let source = zstd::Decoder::new(BufReader::with_capacity(1 << 20, source))?;
    let (room, dir) = (Room::of(0), arrival.dir());
    // The manifest comes first and says how much is to follow.
    let mut known = false;
    let unpacked = unpack::unpack(source, dir, &room, |path, kind| match path {
        _ if path == Path::new(MANIFEST) || path == Path::new(FILES) => {
            match kind.is_file() || kind.is_gnu_sparse() {
                true => Ok(()),
                false => bail!("its {} is not a file", path.display()),
            }
        }
        _ if path == Path::new("rootfs") && !kind.is_dir() => bail!("its rootfs is not a directory"),
        _ if path.starts_with("rootfs") && !known => {
            let manifest =
                Manifest::read(dir)?.with_context(|| format!("it does not begin with {MANIFEST}"))?;
            arrival::room(store, manifest.size)?;
            room.grant(manifest.size);
            known = true;
            Ok(())
        }
        _ if path.starts_with("rootfs") => Ok(()),
        _ => bail!("it holds {}, which is not part of a node image", path.display()),
    });
    unpacked.context("unpacking; it is not a whole node image file")?;
    arrival.adopt(None)
}

/// Counts the compressed bytes, whose total is known, unlike that of the unpacked ones.
struct Counted<'a> {
    inner: fs_err::File,
    done: u64,
    total: u64,
    progress: &'a Progress,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.done += read as u64;
        (self.progress)(self.done, self.total);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::sample;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    fn image_in(store: &Store) -> NodeImage {
        let dir = store.images_dir().join("v1.37.1-x");
        let rootfs = dir.join("rootfs");
        std::fs::create_dir_all(rootfs.join("usr/bin")).unwrap();
        std::fs::write(rootfs.join("usr/bin/sudo"), "sudo").unwrap();
        std::fs::set_permissions(rootfs.join("usr/bin/sudo"), PermissionsExt::from_mode(0o4755)).unwrap();
        std::os::unix::fs::symlink("usr/bin", rootfs.join("bin")).unwrap();
        let text = serde_json::to_vec(&crate::check::record(&rootfs).unwrap()).unwrap();
        std::fs::write(dir.join(FILES), &text).unwrap();
        let manifest = Manifest { files_sha256: crate::hash::bytes(&text), ..sample("v1.37.1-x", "v1.37.1") };
        manifest.write(&dir).unwrap();
        store.get("v1.37.1-x").unwrap()
    }

    fn names(store: &Store) -> Vec<String> {
        let entries = std::fs::read_dir(store.images_dir()).unwrap();
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn an_exported_image_comes_back_whole() {
        let dir = tempfile::tempdir().unwrap();
        let (here, there) = (Store::new(&dir.path().join("here")), Store::new(&dir.path().join("there")));
        image_in(&here);
        let file = dir.path().join("image.tar.zst");
        here.export("v1.37.1-x", &file, &|_, _| ()).unwrap();
        let image = there.import(&file, &|_, _| ()).unwrap();
        assert_eq!(image.name, "v1.37.1-x");
        image.check().unwrap();
        image.verify().unwrap();
        let mode = |path: &str| std::fs::symlink_metadata(image.rootfs().join(path)).unwrap().mode();
        assert_eq!(mode("usr/bin/sudo") & 0o7777, 0o4755);
        assert!(image.rootfs().join("bin").is_symlink());
        // Again: it is there already, and nothing temporary stays.
        there.import(&file, &|_, _| ()).unwrap();
        assert_eq!(names(&there), [".lock", "v1.37.1-x"]);
    }

    #[test]
    fn a_damaged_or_foreign_file_is_refused_and_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let (here, there) = (Store::new(&dir.path().join("here")), Store::new(&dir.path().join("there")));
        let image = image_in(&here);
        let file = dir.path().join("image.tar.zst");
        export(&image, &file, &|_, _| ()).unwrap();
        let whole = std::fs::read(&file).unwrap();
        // A file changed after it was recorded, a cut-off transfer, and something else altogether.
        std::fs::write(image.rootfs().join("usr/bin/sudo"), "SUDO").unwrap();
        let changed = dir.path().join("changed.tar.zst");
        export(&image, &changed, &|_, _| ()).unwrap();
        let cut = dir.path().join("cut.tar.zst");
        std::fs::write(&cut, &whole[..whole.len() / 2]).unwrap();
        let other = dir.path().join("other");
        std::fs::write(&other, "hello").unwrap();
        for bad in [&changed, &cut, &other] {
            let error = format!("{:#}", there.import(bad, &|_, _| ()).unwrap_err());
            assert!(error.contains(bad.to_str().unwrap()), "{error}");
        }
        assert!(there.list().unwrap().is_empty());
        assert_eq!(names(&there), [".lock"]);
    }

    /// An archive as an enemy would make it: a sound image, with `change` made to it before it is packed, or
    /// entries of any kind added.
    fn hostile(dir: &Path, change: fn(&Path), add: fn(&mut tar::Builder<Vec<u8>>)) -> std::path::PathBuf {
        let store = Store::new(&dir.join("enemy"));
        let image = image_in(&store);
        change(&image.dir);
        let mut tar = tar::Builder::new(Vec::new());
        tar.follow_symlinks(false);
        for name in [MANIFEST, FILES] {
            tar.append_path_with_name(image.dir.join(name), name).unwrap();
        }
        add(&mut tar);
        tar.append_dir_all("rootfs", image.rootfs()).unwrap();
        let file = dir.join("hostile.tar.zst");
        std::fs::write(&file, zstd::encode_all(&*tar.into_inner().unwrap(), 1).unwrap()).unwrap();
        file
    }

    fn header(mode: u32, size: u64) -> tar::Header {
        let mut header = tar::Header::new_gnu();
        header.set_mode(mode);
        header.set_size(size);
        header.set_mtime(0);
        header.set_uid(0);
        header.set_gid(0);
        header
    }

    fn link(tar: &mut tar::Builder<Vec<u8>>, path: &str, target: &str) {
        let mut header = header(0o777, 0);
        header.set_entry_type(tar::EntryType::Symlink);
        tar.append_link(&mut header, path, target).unwrap();
    }

    fn file(tar: &mut tar::Builder<Vec<u8>>, path: &str) {
        tar.append_data(&mut header(0o4755, 1), path, &b"x"[..]).unwrap();
    }

    #[test]
    fn only_what_the_record_names_is_taken() {
        type Case = (&'static str, fn(&Path), fn(&mut tar::Builder<Vec<u8>>));
        let chmod = |dir: &Path| {
            let sudo = dir.join("rootfs/usr/bin/sudo");
            std::fs::set_permissions(sudo, PermissionsExt::from_mode(0o6755)).unwrap();
        };
        let cases: [Case; 6] = [
            ("rootfs is not a directory", |_| (), |tar| link(tar, "rootfs", "/")),
            ("digests.json, which is not part", |_| (), |tar| file(tar, "digests.json")),
            ("not in the image's list", |_| (), |tar| file(tar, "rootfs/usr/bin/evil")),
            ("another mode or owner", chmod, |_| ()),
            // By way of a link that stays inside.
            (
                "digests.json, which is not part",
                |_| (),
                |tar| {
                    link(tar, "rootfs/up", "..");
                    file(tar, "rootfs/up/digests.json");
                },
            ),
            ("/.node-image is not a directory", |_| (), |tar| link(tar, "rootfs/.node-image", "../../v1")),
        ];
        for (why, change, add) in cases {
            let dir = tempfile::tempdir().unwrap();
            let there = Store::new(&dir.path().join("there"));
            let error = there.import(&hostile(dir.path(), change, add), &|_, _| ()).unwrap_err();
            assert!(format!("{error:#}").contains(why), "{why}: {error:#}");
            assert_eq!(names(&there), [".lock"], "{why}");
        }
        let dir = tempfile::tempdir().unwrap();
        let there = Store::new(&dir.path().join("there"));
        there.import(&hostile(dir.path(), |_| (), |_| ()), &|_, _| ()).unwrap();
    }

    #[test]
    fn what_others_left_in_an_image_is_not_exported() {
        let dir = tempfile::tempdir().unwrap();
        let (here, there) = (Store::new(&dir.path().join("here")), Store::new(&dir.path().join("there")));
        std::fs::write(image_in(&here).rootfs().join("usr/lock"), "").unwrap();
        let file = dir.path().join("image.tar.zst");
        here.export("v1.37.1-x", &file, &|_, _| ()).unwrap();
        let image = there.import(&file, &|_, _| ()).unwrap();
        assert!(!image.rootfs().join("usr/lock").exists());
    }
}
