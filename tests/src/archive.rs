//! Archives of images, made for tests: whole ones, and such that something is wrong with.

use std::io::Write;
use std::path::Path;

use serde_json::json;

/// A file, as a tar file has it.
fn entry(out: &mut Vec<u8>, name: &str, mode: &str, data: &[u8]) {
    let mut header = [0u8; 512];
    header[..name.len()].copy_from_slice(name.as_bytes());
    header[100..107].copy_from_slice(mode.as_bytes());
    header[108..115].copy_from_slice(b"0000000");
    header[116..123].copy_from_slice(b"0000000");
    let size = format!("{:011o}", data.len());
    header[124..135].copy_from_slice(size.as_bytes());
    header[136..147].copy_from_slice(b"00000000000");
    header[148..156].copy_from_slice(b"        ");
    header[156] = b'0';
    header[257..265].copy_from_slice(b"ustar\x0000");
    let sum: u32 = header.iter().map(|b| u32::from(*b)).sum();
    header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    out.extend_from_slice(&header);
    out.extend_from_slice(data);
    out.resize(out.len().next_multiple_of(512), 0);
}

fn finish(mut tar: Vec<u8>) -> Vec<u8> {
    tar.resize(tar.len() + 1024, 0);
    tar
}

fn sha256(data: &[u8]) -> String {
    let mut child = std::process::Command::new("sha256sum")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("run sha256sum");
    child.stdin.take().expect("its input").write_all(data).expect("write to sha256sum");
    let output = child.wait_with_output().expect("wait for sha256sum");
    String::from_utf8_lossy(&output.stdout).split(' ').next().unwrap_or_default().to_owned()
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
    let mut layer = Vec::new();
    entry(&mut layer, "marker", "0000644", name.as_bytes());
    let mut state = 0x2545_f491_4f6c_dd1d_u64 ^ name.len() as u64;
    for number in 0..megabytes {
        let mut data = Vec::with_capacity(1 << 20);
        while data.len() < 1 << 20 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            data.extend_from_slice(&state.to_le_bytes());
        }
        entry(&mut layer, &format!("data{number}"), "0000644", &data);
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

    let mut tar = Vec::new();
    entry(&mut tar, "oci-layout", "0000644", b"{\"imageLayoutVersion\":\"1.0.0\"}");
    entry(&mut tar, "index.json", "0000644", index.as_bytes());
    for document in [&config, &manifest] {
        entry(
            &mut tar,
            &format!("blobs/sha256/{}", sha256(document.as_bytes())),
            "0000644",
            document.as_bytes(),
        );
    }
    if fault != Fault::MissingLayer {
        let mut layer = layer;
        if fault == Fault::WrongDigest {
            let middle = layer.len() / 2;
            layer[middle] ^= 1;
        }
        entry(&mut tar, &format!("blobs/sha256/{digest}"), "0000644", &layer);
    }
    let mut tar = finish(tar);
    if fault == Fault::Truncated {
        tar.truncate(tar.len() / 2);
    }
    std::fs::write(path, tar).expect("write an archive");
}
