//! The node image as an image of the engine: brought there once, under a name that says what is in it.

use std::io::Write as _;

use anyhow::{Context, Result};
use bollard::Docker as Client;
use bollard::query_parameters::CreateImageOptionsBuilder;
use bytes::Bytes;
use futures::{SinkExt as _, TryStreamExt as _, channel::mpsc};
use image::NodeImage;

use super::refused;

const REPOSITORY: &str = "manykube/node";
const CHUNK: usize = 1 << 20;
/// How much is read ahead of the engine.
const CHUNKS: usize = 8;

/// The images of our store are named by what they were made of.
pub fn reference(image: &NodeImage) -> String {
    format!("{REPOSITORY}:{}", image.name)
}

pub async fn ensure(client: &Client, image: &NodeImage) -> Result<String> {
    let reference = reference(image);
    match client.inspect_image(&reference).await {
        Ok(_) => return Ok(reference),
        Err(e) if super::container::is_missing(&e) => {}
        Err(e) => return Err(e).with_context(|| format!("look for the image {reference} in the engine")),
    }
    let (sender, receiver) = mpsc::channel(CHUNKS);
    let packed = image.clone();
    let packing = tokio::task::spawn_blocking(move || pack(&packed, sender));
    let options =
        CreateImageOptionsBuilder::default().from_src("-").repo(REPOSITORY).tag(&image.name).build();
    let body = bollard::body_try_stream(receiver.map_ok(Bytes::from));
    let bring = client.create_image(Some(options), Some(body), None).try_collect::<Vec<_>>();
    let brought = bring.await;
    let packed = packing.await?;
    if let Err(error) = brought {
        if let Some(full) = refused::disk(&error.to_string()) {
            return Err(full.into());
        }
        // Why it could not be read says more than that the engine got half of it.
        let half = packed.err().filter(|e| !gave_up(e));
        let why = half.unwrap_or_else(|| error.into());
        return Err(why.context(format!("bring the node image {} to the engine", image.name)));
    }
    packed.with_context(|| format!("read the node image {}", image.name))?;
    Ok(reference)
}

/// The engine did not want to have more.
fn gave_up(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    io.is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
}

type Sender = mpsc::Sender<Result<Vec<u8>, std::io::Error>>;

fn pack(image: &NodeImage, sender: Sender) -> Result<()> {
    let mut tar = tar::Builder::new(std::io::BufWriter::with_capacity(
        CHUNK,
        Pipe { sender, runtime: tokio::runtime::Handle::current() },
    ));
    tar.follow_symlinks(false);
    for entry in fs_err::read_dir(image.rootfs())? {
        let (entry, name) = entry.map(|e| (e.path(), e.file_name()))?;
        if name == "var" {
            // Every node has its own, from our store.
            tar.append_dir(&name, &entry)?;
        } else if entry.is_dir() && !entry.is_symlink() {
            tar.append_dir_all(&name, &entry)?;
        } else {
            tar.append_path_with_name(&entry, &name)?;
        }
    }
    tar.into_inner()?.flush()?;
    Ok(())
}

/// What is written here is sent to the engine, as fast as it takes it.
struct Pipe {
    sender: Sender,
    runtime: tokio::runtime::Handle,
}

impl std::io::Write for Pipe {
    fn write(&mut self, data: &[u8]) -> std::io::Result<usize> {
        let sent = self.runtime.block_on(self.sender.send(Ok(data.to_vec())));
        sent.map_err(|_| std::io::Error::from(std::io::ErrorKind::BrokenPipe))?;
        Ok(data.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
