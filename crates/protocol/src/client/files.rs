//! Files of the node.

use std::io;

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use model::node_spec::NodeFile;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::mpsc;
use tokio_util::io::StreamReader;

use super::{Error, Node};
use crate::messages::{
    Digest, Digests, Empty, Fill, GetOutput, Path, Paths, PutFile, PutInput, get_output, put_input,
};
use crate::{PART, calls};

const AHEAD: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileInfo {
    pub directory: bool,
    pub mode: u32,
    pub length: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileDigest {
    pub sha256: [u8; 32],
    pub mode: u32,
}

/// A file on its way here.
pub struct Received {
    pub info: FileInfo,
    pub data: Box<dyn AsyncRead + Send + Unpin>,
}

impl Node {
    /// Replaces these files, each as a whole, one after the other.
    pub async fn put(&self, files: &[NodeFile]) -> Result<(), Error> {
        let messages: Vec<PutInput> = files.iter().flat_map(parts).chain([end()]).collect();
        self.talk::<PutInput, Empty>(calls::PUT, stream::iter(messages)).await?.finish(self).await
    }

    /// Writes one file with all that `data` has. An existing file keeps its owner.
    pub async fn put_stream(
        &self,
        path: &str,
        mode: u32,
        mut data: impl AsyncRead + Send + Unpin,
    ) -> Result<(), PutError> {
        let (sender, receiver) = mpsc::channel(AHEAD);
        let head = PutFile { path: path.to_owned(), mode, in_place: true };
        let head = PutInput { kind: Some(put_input::Kind::File(head)) };
        let rest = stream::unfold(receiver, |mut r| async { Some((r.recv().await?, r)) });
        let answer = self.talk::<PutInput, Empty>(calls::PUT, stream::iter([head]).chain(rest));
        let feed = async move {
            let mut buffer = bytes::BytesMut::with_capacity(PART);
            loop {
                buffer.reserve(PART);
                let last = (&mut data).take(PART as u64).read_buf(&mut buffer).await? == 0;
                let part = PutInput { kind: Some(put_input::Kind::Data(buffer.split().freeze())) };
                // If the agent takes no more, its answer says why.
                if sender.send(if last { end() } else { part }).await.is_err() || last {
                    return Ok::<_, io::Error>(());
                }
            }
        };
        let answer = async { answer.await?.finish(self).await };
        tokio::pin!(answer, feed);
        tokio::select! {
            done = &mut answer => Ok(done?),
            fed = &mut feed => {
                fed?;
                Ok(answer.await?)
            }
        }
    }

    /// The file at `path`; `None` where there is none.
    pub async fn get(&self, path: &str) -> Result<Option<Received>, Error> {
        let asked = self.listen::<Path, GetOutput>(calls::GET, Path { path: path.to_owned() }).await;
        let mut parts = match asked {
            Err(e) if e.is_not_found() => return Ok(None),
            asked => asked?,
        };
        let first = parts.message().await.map_err(|s| self.error(&s));
        let found = match first {
            Err(e) if e.is_not_found() => return Ok(None),
            first => match first?.and_then(|m| m.kind) {
                Some(get_output::Kind::Found(found)) => found,
                _ => return Err(self.refused(format!("it did not say what {path} is"))),
            },
        };
        let info = FileInfo { directory: found.directory, mode: found.mode, length: found.length };
        let data = parts.map(|part| {
            part.map_err(io::Error::other).map(|part| match part.kind {
                Some(get_output::Kind::Data(data)) => data,
                _ => Bytes::new(),
            })
        });
        Ok(Some(Received { info, data: Box::new(StreamReader::new(Box::pin(data))) }))
    }

    /// A small file as a whole; `None` where there is none.
    pub async fn read(&self, path: &str) -> Result<Option<Vec<u8>>, Error> {
        const LONGEST: u64 = 4 << 20;
        let Some(received) = self.get(path).await? else { return Ok(None) };
        let mut data = Vec::new();
        let read = received.data.take(LONGEST + 1).read_to_end(&mut data).await;
        match read {
            Ok(_) if data.len() as u64 > LONGEST => Err(self.refused(format!("{path} is too long"))),
            Ok(_) => Ok(Some(data)),
            Err(e) => Err(self.refused(format!("read {path}: {e}"))),
        }
    }

    /// What each of these files is, `None` where there is none.
    pub async fn digests(&self, paths: Vec<String>) -> Result<Vec<Option<FileDigest>>, Error> {
        let asked = paths.len();
        let found: Digests = self.call(calls::DIGESTS, Paths { paths }).await?;
        if found.files.len() != asked {
            return Err(self.refused("it did not answer for every file".to_owned()));
        }
        let one = |file: &Digest| {
            Some(FileDigest { sha256: file.sha256.as_ref().try_into().ok()?, mode: file.mode })
        };
        Ok(found.files.iter().map(one).collect())
    }

    /// Leaves the node's own disk so many bytes; `None` gives back what was taken.
    pub async fn fill(&self, leave: Option<u64>) -> Result<(), Error> {
        self.call::<Fill, Empty>(calls::FILL, Fill { leave }).await.map(drop)
    }

    /// Removes files; one that is not there is removed already.
    pub async fn remove(&self, paths: Vec<String>) -> Result<(), Error> {
        self.call::<Paths, Empty>(calls::REMOVE, Paths { paths }).await.map(drop)
    }
}

/// The file did not get there.
#[derive(Debug, thiserror::Error)]
pub enum PutError {
    #[error(transparent)]
    Node(#[from] Error),
    #[error("read the source: {0}")]
    Source(#[from] io::Error),
}

/// All files are whole.
fn end() -> PutInput {
    PutInput { kind: Some(put_input::Kind::End(Empty {})) }
}

fn parts(file: &NodeFile) -> impl Iterator<Item = PutInput> + use<> {
    let head = PutFile { path: file.path.clone(), mode: file.mode, in_place: false };
    let head = PutInput { kind: Some(put_input::Kind::File(head)) };
    let mut data = Bytes::from(file.data.clone());
    let data = std::iter::from_fn(move || {
        let part = (!data.is_empty()).then(|| data.split_to(data.len().min(PART)))?;
        Some(PutInput { kind: Some(put_input::Kind::Data(part)) })
    });
    std::iter::once(head).chain(data)
}

trait Finish {
    async fn finish(self, node: &Node) -> Result<(), Error>;
}

impl Finish for tonic::Streaming<Empty> {
    /// Waits until the agent has said that all is done.
    async fn finish(mut self, node: &Node) -> Result<(), Error> {
        match self.message().await.map_err(|s| node.error(&s))? {
            Some(_) => Ok(()),
            None => {
                let why = "it ended while files were written".to_owned();
                Err(Error::Silent { machine: node.machine.clone(), why })
            }
        }
    }
}
