//! A part of an image, packed into a file that goes with this process.

use std::fs::File;
use std::io::{BufWriter, Seek as _, Write as _};
use std::path::Path;

use anyhow::{Context, Result};
use flate2::Compression;
use flate2::write::GzEncoder;

use super::documents::Layer;
use super::parts::{self, Part};
use super::{Doing, LayerEvent, LayerProgress};
use crate::hash::Tee;
use crate::store::NodeImage;

pub struct Packed {
    pub layer: Layer,
    /// At its beginning.
    pub file: File,
}

/// `dir` has the room. The lowest level: packing is what a push spends its time with.
pub fn pack(image: &NodeImage, part: Part, dir: &Path, progress: &LayerProgress) -> Result<Packed> {
    let total = parts::size(image, part)?;
    let done = std::cell::Cell::new(0);
    let wrote = |bytes| {
        done.set(done.get() + bytes);
        let layer = part.name().to_owned();
        progress(LayerEvent { layer, doing: Doing::Packing, done: done.get(), total });
    };
    let packed = (|| {
        let file = tempfile::tempfile_in(dir)?;
        let compressed = Tee::new(BufWriter::with_capacity(1 << 20, file));
        let plain = Tee::new(GzEncoder::new(compressed, Compression::fast()));
        let (encoder, diff_id, _) = parts::pack(image, part, plain, &wrote)?.finish();
        let (mut writer, digest, size) = encoder.finish()?.finish();
        writer.flush()?;
        let mut file = writer.into_inner().map_err(|e| e.into_error())?;
        file.rewind()?;
        let named = |hex: String| format!("sha256:{hex}");
        let layer = Layer { name: part.name(), digest: named(digest), size, diff_id: named(diff_id) };
        anyhow::Ok(Packed { layer, file })
    })();
    packed.with_context(|| format!("packing the {} of the node image {}", part.name(), image.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrival::{Arrival, unpack_file};
    use crate::bounds::Room;
    use crate::manifest::{FILES, Manifest, sample};
    use crate::store::Store;
    use std::io::Read as _;

    fn image_in(store: &Store) -> NodeImage {
        let dir = store.images_dir().join("v1.37.1-x");
        for (path, text) in [("usr/bin/kubelet", "k"), ("var/lib/dpkg/status", "s")] {
            let path = dir.join("rootfs").join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
            std::fs::write(&path, text).expect("a file");
            let times = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
            let file = std::fs::File::options().write(true).open(&path).expect("a file");
            file.set_modified(times).expect("its time");
        }
        let text = serde_json::to_vec(&crate::check::record(&dir.join("rootfs")).expect("a record"));
        let text = text.expect("a document");
        std::fs::write(dir.join(FILES), &text).expect("a file");
        let manifest = Manifest { files_sha256: crate::hash::bytes(&text), ..sample("v1.37.1-x", "v1.37.1") };
        manifest.write(&dir).expect("a manifest");
        store.get("v1.37.1-x").expect("an image")
    }

    fn digests(image: &NodeImage, dir: &Path) -> Vec<String> {
        let pack = |part| pack(image, part, dir, &|_| ()).expect("a layer").layer.digest;
        Part::ALL.map(pack).to_vec()
    }

    #[test]
    fn the_same_files_are_the_same_layers_and_come_back_whole() {
        let dir = tempfile::tempdir().expect("a directory");
        let (here, there) = (Store::new(&dir.path().join("here")), Store::new(&dir.path().join("there")));
        let image = image_in(&here);
        let (arrival, room) = (Arrival::new(&there).expect("an arrival"), Room::of(0));
        for part in Part::ALL {
            let mut packed = pack(&image, part, dir.path(), &|_| ()).expect("a layer");
            let mut bytes = Vec::new();
            packed.file.read_to_end(&mut bytes).expect("its bytes");
            let file = dir.path().join(part.name());
            std::fs::write(&file, bytes).expect("a file");
            let (digest, unpacked) = unpack_file(&file, &arrival.rootfs(), &room, &|_| ()).expect("a digest");
            unpacked.expect("a whole layer");
            assert_eq!(digest, packed.layer.digest);
        }
        let came = arrival.adopt(Some("sha256:ab")).expect("an image");
        came.verify().expect("an undamaged image");
        assert_eq!(came.manifest, image.manifest);
        // Directories were made at another time there.
        assert_eq!(digests(&came, dir.path()), digests(&image, dir.path()));
        assert_eq!(there.by_digest("sha256:ab").expect("a list").expect("an image").name, "v1.37.1-x");
        assert_eq!(there.named("r.example/node:v1@sha256:ab").expect("an image").name, "v1.37.1-x");
    }

    #[test]
    fn another_build_of_the_same_name_gets_another_name() {
        let dir = tempfile::tempdir().expect("a directory");
        let store = Store::new(dir.path());
        let first = image_in(&store);
        let arrival = Arrival::new(&store).expect("an arrival");
        std::fs::create_dir_all(arrival.rootfs()).expect("a directory");
        std::fs::write(arrival.rootfs().join("other"), "x").expect("a file");
        let text = serde_json::to_vec(&crate::check::record(&arrival.rootfs()).expect("a record"));
        let text = text.expect("a document");
        std::fs::write(arrival.dir().join(FILES), &text).expect("a file");
        let sum = crate::hash::bytes(&text);
        Manifest { files_sha256: sum.clone(), ..first.manifest }.write(arrival.dir()).expect("a manifest");
        let second = arrival.adopt(Some("sha256:cd")).expect("an image");
        assert_eq!(second.name, format!("v1.37.1-x-{}", &sum[..12]));
        assert_eq!(store.list().expect("a list").len(), 2);
    }
}
