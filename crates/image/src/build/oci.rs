//! Container images as one OCI archive that containerd imports.
//!
//! Each image has one uncompressed layer: nothing is ever sent over a network, and compressing would only
//! cost time on both sides.

use std::io::{self, Seek, Write};

use anyhow::Result;
use serde_json::{Value, json};

use super::layer::Layer;
use crate::hash::{self, Tee};

/// An image to be.
#[derive(Debug, Clone)]
pub struct Image {
    /// Full reference, e.g. `registry.k8s.io/pause:3.10.2`.
    pub reference: String,
    pub layer: Layer,
    pub entrypoint: Vec<String>,
    pub cmd: Vec<String>,
}

const LAYOUT: &str = r#"{"imageLayoutVersion":"1.0.0"}"#;
const SEARCH_PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// `amd64`, `arm64`: as container images name this machine.
pub fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// Writes all images into one archive.
pub fn write(images: &[Image], to: impl Write + Seek) -> Result<()> {
    let mut tar = tar::Builder::new(to);
    put(&mut tar, "oci-layout", LAYOUT.as_bytes())?;
    let mut listed = Vec::new();
    for image in images {
        let (layer_digest, layer_size) = measure(&image.layer)?;
        let config = config(image, &layer_digest).to_string();
        let manifest = manifest(&config, &layer_digest, layer_size).to_string();
        let mut header = header(layer_size);
        let mut blob = tar.append_writer(&mut header, blob_path(&layer_digest))?;
        image.layer.write(&mut blob)?;
        blob.finish()?;
        for document in [&config, &manifest] {
            put(&mut tar, &blob_path(&hash::bytes(document.as_bytes())), document.as_bytes())?;
        }
        listed.push(descriptor("manifest", &manifest, &image.reference));
    }
    let index = json!({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": listed});
    put(&mut tar, "index.json", index.to_string().as_bytes())?;
    tar.into_inner()?.flush()?;
    Ok(())
}

/// A tar entry starts with its name (the digest) and size, so the layer is produced twice: measured first.
fn measure(layer: &Layer) -> Result<(String, u64)> {
    let mut tee = Tee::new(io::sink());
    layer.write(&mut tee)?;
    let (_, digest, size) = tee.finish();
    Ok((digest, size))
}

fn config(image: &Image, layer: &str) -> Value {
    let epoch = "1970-01-01T00:00:00Z";
    let mut run = json!({"Env": [SEARCH_PATH], "WorkingDir": "/"});
    for (name, words) in [("Entrypoint", &image.entrypoint), ("Cmd", &image.cmd)] {
        if !words.is_empty() {
            run[name] = json!(words);
        }
    }
    json!({
        "architecture": architecture(),
        "os": "linux",
        "created": epoch,
        "config": run,
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{layer}")]},
        "history": [{"created": epoch, "created_by": "manykube"}],
    })
}

fn manifest(config: &str, layer: &str, layer_size: u64) -> Value {
    json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": {
            "mediaType": "application/vnd.oci.image.config.v1+json",
            "digest": format!("sha256:{}", hash::bytes(config.as_bytes())),
            "size": config.len(),
        },
        "layers": [{
            "mediaType": "application/vnd.oci.image.layer.v1.tar",
            "digest": format!("sha256:{layer}"),
            "size": layer_size,
        }],
    })
}

fn descriptor(kind: &str, document: &str, reference: &str) -> Value {
    json!({
        "mediaType": format!("application/vnd.oci.image.{kind}.v1+json"),
        "digest": format!("sha256:{}", hash::bytes(document.as_bytes())),
        "size": document.len(),
        "platform": {"architecture": architecture(), "os": "linux"},
        // What containerd names the image.
        "annotations": {"io.containerd.image.name": reference},
    })
}

fn blob_path(digest: &str) -> String {
    format!("blobs/sha256/{digest}")
}

fn put(tar: &mut tar::Builder<impl Write>, path: &str, content: &[u8]) -> Result<()> {
    tar.append_data(&mut header(content.len() as u64), path, content)?;
    Ok(())
}

fn header(size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_mode(0o644);
    header.set_mtime(0);
    header.set_size(size);
    header
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::io::Read;

    fn archive() -> Vec<u8> {
        let mut layer = Layer::default();
        layer.text("hello", "world");
        let image = Image {
            reference: "registry.k8s.io/pause:3.10.2".into(),
            layer,
            entrypoint: vec!["/pause".into()],
            cmd: vec![],
        };
        let mut bytes = io::Cursor::new(Vec::new());
        write(&[image], &mut bytes).unwrap();
        bytes.into_inner()
    }

    fn entries(tar: &[u8]) -> BTreeMap<String, Vec<u8>> {
        let mut archive = tar::Archive::new(tar);
        let read = |entry: io::Result<tar::Entry<&[u8]>>| {
            let mut entry = entry.unwrap();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            (entry.path().unwrap().display().to_string(), content)
        };
        archive.entries().unwrap().map(read).collect()
    }

    /// The content a descriptor points at, after checking that size and digest are right.
    fn follow<'a>(entries: &'a BTreeMap<String, Vec<u8>>, descriptor: &Value) -> &'a [u8] {
        let digest = descriptor["digest"].as_str().unwrap().trim_start_matches("sha256:");
        let blob = &entries[&blob_path(digest)];
        assert_eq!(
            (hash::bytes(blob), blob.len() as u64),
            (digest.to_owned(), descriptor["size"].as_u64().unwrap())
        );
        blob
    }

    #[test]
    fn index_leads_to_manifest_config_and_layer() {
        let entries = entries(&archive());
        let index: Value = serde_json::from_slice(&entries["index.json"]).unwrap();
        let listed = &index["manifests"][0];
        assert_eq!(listed["annotations"]["io.containerd.image.name"], "registry.k8s.io/pause:3.10.2");
        let manifest: Value = serde_json::from_slice(follow(&entries, listed)).unwrap();
        let layer = follow(&entries, &manifest["layers"][0]);
        let config: Value = serde_json::from_slice(follow(&entries, &manifest["config"])).unwrap();
        assert_eq!(config["rootfs"]["diff_ids"][0], format!("sha256:{}", hash::bytes(layer)));
        assert_eq!(config["config"]["Entrypoint"][0], "/pause");
        assert!(config["config"].get("Cmd").is_none());
    }

    #[test]
    fn the_same_content_gives_the_same_archive() {
        assert_eq!(archive(), archive());
    }
}
