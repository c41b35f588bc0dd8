//! Archives of images, made for tests: whole ones, and such that something is wrong with.

use std::path::Path;

use serde_json::json;
use sha2::{Digest as _, Sha256};

type Tar = tar::Builder<Vec<u8>>;

fn entry(tar: &mut Tar, name: &str, data: &[u8]) {
    let mut header = tar::Header::new_ustar();
    header.set_mode(0o644);
    header.set_size(data.len() as u64);
    tar.append_data(&mut header, name, data).expect("write to memory");
}

fn finish(tar: Tar) -> Vec<u8> {
    tar.into_inner().expect("write to memory")
}

fn sha256(data: &[u8]) -> String {
    Sha256::digest(data).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What may be wrong with an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    None,
    /// A layer is not there.
    MissingLayer,
    /// A layer is not what its digest says.
    WrongDigest,
    /// It ends too early.
    Truncated,
    /// Its configuration cannot be read.
    NoConfig,
}

/// An OCI archive of one image with one layer: a file `/marker` with the image's name, and `megabytes` that
/// cannot be compressed.
pub fn oci(path: &Path, name: &str, megabytes: usize, fault: Fault) {
    let mut layer = Tar::new(Vec::new());
    entry(&mut layer, "marker", name.as_bytes());
    let mut state = 0x2545_f491_4f6c_dd1d_u64 ^ name.len() as u64;
    for number in 0..megabytes {
        let mut data = Vec::with_capacity(1 << 20);
        while data.len() < 1 << 20 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            data.extend_from_slice(&state.to_le_bytes());
        }
        entry(&mut layer, &format!("data{number}"), &data);
    }
    let layer = finish(layer);
    let digest = sha256(&layer);
    let mut config = json!({
        "architecture": if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" },
        "os": "linux",
        "config": {"Cmd": ["/marker"]},
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{digest}")]},
    })
    .to_string();
    if fault == Fault::NoConfig {
        config = "{".to_owned();
    }
    let blob = |media: &str, digest: &str, size: usize| json!({"mediaType": media, "digest": format!("sha256:{digest}"), "size": size});
    let manifest = json!({
        "schemaVersion": 2,
        "config": blob("application/vnd.oci.image.config.v1+json", &sha256(config.as_bytes()), config.len()),
        "layers": [blob("application/vnd.oci.image.layer.v1.tar", &digest, layer.len())],
    })
    .to_string();
    let mut top =
        blob("application/vnd.oci.image.manifest.v1+json", &sha256(manifest.as_bytes()), manifest.len());
    top["annotations"] = json!({"io.containerd.image.name": name});
    let index = json!({"schemaVersion": 2, "manifests": [top]}).to_string();

    let mut tar = Tar::new(Vec::new());
    entry(&mut tar, "oci-layout", b"{\"imageLayoutVersion\":\"1.0.0\"}");
    entry(&mut tar, "index.json", index.as_bytes());
    for document in [&config, &manifest] {
        entry(&mut tar, &format!("blobs/sha256/{}", sha256(document.as_bytes())), document.as_bytes());
    }
    if fault != Fault::MissingLayer {
        let mut layer = layer;
        if fault == Fault::WrongDigest {
            let middle = layer.len() / 2;
            layer[middle] ^= 1;
        }
        entry(&mut tar, &format!("blobs/sha256/{digest}"), &layer);
    }
    let mut tar = finish(tar);
    if fault == Fault::Truncated {
        tar.truncate(tar.len() / 2);
    }
    std::fs::write(path, tar).expect("write an archive");
}
