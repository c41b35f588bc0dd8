//! A registry that lies, on a real socket.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::documents::{self, MANIFEST_TYPE};
use super::{Reference, pull};
use crate::hash;
use crate::manifest::{Manifest, sample};
use crate::store::Store;

/// What it was asked for, one path after the other.
type Asked = Arc<Mutex<Vec<String>>>;

/// Serves one image with these layers; each blob is `body`, or missing if that is empty. The thread ends with the test's process.
fn registry(layers: Vec<Value>, body: &'static [u8]) -> (Reference, Asked) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let image = Manifest { size: 10, ..sample("v1.37.1-x", "v1.37.1") };
    let config = documents::config(&image, &[]).to_string();
    let digest = format!("sha256:{}", hash::bytes(config.as_bytes()));
    let mut manifest = documents::manifest((&digest, config.len() as u64), &[]);
    manifest["layers"] = Value::Array(layers);
    let manifest = manifest.to_string();
    let asked = Asked::default();
    let told = asked.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let path = path_of(&stream);
            let (kind, answer) = match &*path {
                "/v2/" => ("application/json", b"{}".to_vec()),
                path if path.contains("/manifests/") => (MANIFEST_TYPE, manifest.clone().into_bytes()),
                path if path.ends_with(&digest) => ("application/octet-stream", config.clone().into_bytes()),
                _ => ("application/octet-stream", body.to_vec()),
            };
            told.lock().expect("no panic").push(path);
            answer_with(stream, kind, &answer);
        }
    });
    (format!("127.0.0.1:{port}/node:v1").parse().expect("a reference"), asked)
}

fn path_of(stream: &TcpStream) -> String {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let first = lines.next().unwrap_or_default();
    // To the end of the request.
    lines.take_while(|line| !line.is_empty()).for_each(drop);
    first.split(' ').nth(1).unwrap_or_default().to_owned()
}

/// Without a length: the end of the connection is the end of the answer.
fn answer_with(mut stream: TcpStream, kind: &str, body: &[u8]) {
    let status = if body.is_empty() { "404 Not Found" } else { "200 OK" };
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nConnection: close\r\n\r\n");
    // Who has read enough hangs up.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
}

fn layer(digest: &str, size: u64) -> Value {
    json!({ "mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": digest, "size": size })
}

async fn refused(layers: Vec<Value>, body: &'static [u8], cache: &Path) -> (String, Vec<String>) {
    let (reference, asked) = registry(layers, body);
    let pulled = pull(&Store::new(cache), &reference, false, Arc::new(|_| ())).await;
    let asked = asked.lock().expect("no panic").clone();
    (format!("{:#}", pulled.expect_err("a refusal")), asked)
}

fn files_below(dir: &Path) -> Vec<String> {
    let entries = crate::walk::tree(dir).expect("a tree").into_iter().filter(|e| !e.metadata.is_dir());
    entries.map(|e| e.path.display().to_string()).collect()
}

#[tokio::test]
async fn a_digest_that_is_a_path_writes_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let (cache, target) = (dir.path().join("cache"), dir.path().join("target"));
    std::fs::write(&target, "mine").expect("a file");
    let absolute = format!("sha256:{}", target.display());
    for digest in [&*absolute, "sha256:../../../new", "sha256:../../../target", "../x", "sha256:"] {
        let (why, asked) = refused(vec![layer(digest, 100)], b"theirs", &cache).await;
        assert!(why.contains("where a digest belongs"), "{digest}: {why}");
        assert!(asked.iter().all(|path| !path.contains("target")), "{asked:?}");
    }
    assert_eq!(std::fs::read(&target).expect("a file"), b"mine");
    assert_eq!(files_below(dir.path()), ["target"]);
}

#[tokio::test]
async fn a_layer_is_kept_no_further_than_it_says() {
    let dir = tempfile::tempdir().expect("a directory");
    let digest = format!("sha256:{}", "0".repeat(64));
    let (why, _) = refused(vec![layer(&digest, 3)], &[7; 100_000], dir.path()).await;
    assert!(why.contains("more than the 3 bytes"), "{why}");
    assert_eq!(files_below(dir.path()), ["node-images/.lock"]);
}

#[tokio::test]
async fn addresses_elsewhere_are_not_asked() {
    let dir = tempfile::tempdir().expect("a directory");
    let elsewhere = TcpListener::bind("127.0.0.1:0").expect("a port");
    elsewhere.set_nonblocking(true).expect("not waiting");
    let mut foreign = layer(&format!("sha256:{}", "0".repeat(64)), 9);
    foreign["urls"] = json!([format!("http://{}/x", elsewhere.local_addr().expect("an address"))]);
    let (why, asked) = refused(vec![foreign], b"", dir.path()).await;
    assert!(why.contains("has no such image"), "{why}");
    assert!(asked.iter().any(|path| path.contains("/blobs/sha256:0")), "{why}: {asked:?}");
    assert!(elsewhere.accept().is_err(), "another server was asked");
}
