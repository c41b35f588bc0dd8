//! Files of this node, by paths as the node sees them.

use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use futures::{StreamExt as _, stream};
use protocol::messages::{
    Digest, Digests, Empty, Found, GetOutput, PutFile, PutInput, get_output, put_input,
};
use protocol::{Answers, PART};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tonic::{Status, Streaming};

use super::{failed, internal};

/// A file that is replaced as a whole is held in memory until it is complete.
const LONGEST: usize = 512 << 20;

/// A file on its way in.
enum Incoming {
    /// Replaced as a whole when its data are complete.
    Whole(PutFile, Vec<u8>),
    /// Written as it comes.
    InPlace(PutFile, tokio::fs::File),
}

pub async fn put(mut input: Streaming<PutInput>) -> Result<Empty, Status> {
    let mut current = None;
    while let Some(message) = input.message().await? {
        match message.kind {
            Some(put_input::Kind::File(file)) => {
                finish(current.take()).await?;
                current = Some(begin(file).await?);
            }
            Some(put_input::Kind::Data(data)) => match &mut current {
                None => return Err(Status::invalid_argument("data of no file")),
                Some(Incoming::Whole(file, held)) if held.len() + data.len() > LONGEST => {
                    return Err(Status::invalid_argument(format!("{} is too long", file.path)));
                }
                Some(Incoming::Whole(_, held)) => held.extend_from_slice(&data),
                Some(Incoming::InPlace(file, at)) => {
                    at.write_all(&data).await.map_err(|e| failed(&file.path, &e))?;
                }
            },
            Some(put_input::Kind::End(_)) => {
                finish(current.take()).await?;
                return Ok(Empty {});
            }
            None => return Err(Status::unimplemented("this agent does not know that part of a file")),
        }
    }
    Err(Status::aborted("the files ended too early"))
}

async fn begin(file: PutFile) -> Result<Incoming, Status> {
    let path = Path::new(&file.path);
    if !path.is_absolute() {
        return Err(Status::invalid_argument(format!("{} is not absolute", file.path)));
    }
    if let Some(parent) = path.parent() {
        tokio::fs::create_dir_all(parent).await.map_err(|e| failed(&parent.to_string_lossy(), &e))?;
    }
    if !file.in_place {
        return Ok(Incoming::Whole(file, Vec::new()));
    }
    let mut options = tokio::fs::OpenOptions::new();
    let opened = options.write(true).create(true).truncate(true).mode(file.mode).open(path).await;
    let opened = opened.map_err(|e| failed(&file.path, &e))?;
    Ok(Incoming::InPlace(file, opened))
}

async fn finish(incoming: Option<Incoming>) -> Result<(), Status> {
    match incoming {
        None => Ok(()),
        Some(Incoming::Whole(file, data)) => {
            let replace = move || {
                base::atomic::replace(Path::new(&file.path), &data, file.mode)
                    .map_err(|e| failed(&file.path, &e))
            };
            tokio::task::spawn_blocking(replace).await.map_err(internal)?
        }
        Some(Incoming::InPlace(file, mut at)) => {
            let set = at.set_permissions(PermissionsExt::from_mode(file.mode)).await;
            let flushed = at.flush().await;
            set.and(flushed).map_err(|e| failed(&file.path, &e))
        }
    }
}

pub async fn get(path: String) -> Result<Answers<GetOutput>, Status> {
    let file = tokio::fs::File::open(&path).await.map_err(|e| failed(&path, &e))?;
    let found = file.metadata().await.map_err(|e| failed(&path, &e))?;
    if !found.is_file() && !found.is_dir() {
        return Err(Status::failed_precondition(format!("{path} is no file")));
    }
    let head =
        Found { directory: found.is_dir(), mode: found.permissions().mode() & 0o7777, length: found.len() };
    let head = GetOutput { kind: Some(get_output::Kind::Found(head)) };
    if found.is_dir() {
        return Ok(stream::iter([Ok(head)]).boxed());
    }
    let data = stream::unfold(Some((file, path)), |state| async {
        let (mut file, path) = state?;
        let mut buffer = bytes::BytesMut::with_capacity(PART);
        match file.read_buf(&mut buffer).await {
            Ok(0) => None,
            Ok(_) => {
                let part = GetOutput { kind: Some(get_output::Kind::Data(buffer.freeze())) };
                Some((Ok(part), Some((file, path))))
            }
            Err(e) => Some((Err(failed(&path, &e)), None)),
        }
    });
    Ok(stream::iter([Ok(head)]).chain(data).boxed())
}

pub fn digests(paths: &[String]) -> Result<Digests, Status> {
    let files = paths.iter().map(|path| digest(path).map_err(|e| failed(path, &e)));
    Ok(Digests { files: files.collect::<Result<_, _>>()? })
}

fn digest(path: &str) -> std::io::Result<Digest> {
    let mut file = match std::fs::File::open(path) {
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(Digest::default());
        }
        opened => opened?,
    };
    let found = file.metadata()?;
    if !found.is_file() {
        return Ok(Digest::default());
    }
    let mut sum = ring::digest::Context::new(&ring::digest::SHA256);
    let mut buffer = vec![0; PART];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            length => sum.update(&buffer[..length]),
        }
    }
    let sha256 = bytes::Bytes::copy_from_slice(sum.finish().as_ref());
    Ok(Digest { sha256, mode: found.permissions().mode() & 0o7777 })
}

pub fn remove(paths: &[String]) -> Result<Empty, Status> {
    for path in paths {
        base::atomic::remove(Path::new(path)).map_err(|e| failed(path, &e))?;
    }
    Ok(Empty {})
}
