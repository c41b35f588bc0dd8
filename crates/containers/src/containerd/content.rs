//! The content store: blobs by their digest.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use futures::{StreamExt, stream};
use tokio::sync::mpsc;

use super::client::{Client, Error};
use super::messages::{
    Abort, Arriving, COMMIT, ContentInfo, ContentInfoAnswer, Digest, Empty, FieldMask, Filters, Labels, STAT,
    UpdateContent, WRITE, WriteContent, Written,
};
use crate::oci::Descriptor;

/// containerd takes messages of up to 16 MiB; one this long costs nothing to speak of.
const CHUNK: usize = 1 << 20;
/// Messages on their way.
const AHEAD: usize = 4;

/// Bytes somewhere in a file.
#[derive(Debug)]
pub struct Blob {
    pub file: File,
    pub start: u64,
}

impl Client {
    pub async fn content(&self, digest: &str) -> Result<Option<ContentInfo>, Error> {
        let message = Digest { digest: digest.to_owned() };
        let answer: Result<ContentInfoAnswer, Error> =
            self.call("/containerd.services.content.v1.Content/Info", message).await;
        match answer {
            Ok(answer) => Ok(answer.info),
            Err(e) if e.is_not_found() => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// How much of blobs that are on their way has arrived: changes as long as somebody sends.
    pub async fn arrived(&self) -> Result<Vec<(String, i64)>, Error> {
        let method = "/containerd.services.content.v1.Content/ListStatuses";
        let answer: Arriving = self.call(method, Filters::default()).await?;
        Ok(answer.blobs.into_iter().map(|b| (b.reference, b.offset)).collect())
    }

    /// Adds labels; those that are there stay. They say what a blob refers to, so that it is kept as well.
    pub async fn label_content(&self, digest: &str, labels: Labels) -> Result<(), Error> {
        if labels.is_empty() {
            return Ok(());
        }
        let paths = labels.keys().map(|key| format!("labels.{key}")).collect();
        let info = ContentInfo { digest: digest.to_owned(), size: 0, labels };
        let message = UpdateContent { info: Some(info), mask: Some(FieldMask { paths }) };
        self.call::<_, ContentInfoAnswer>("/containerd.services.content.v1.Content/Update", message)
            .await
            .map(drop)
    }

    /// Puts a blob into the store. containerd checks its digest. Bytes that are on its disk already are not
    /// sent: those of an earlier attempt, or the whole blob when somebody has linked it there.
    pub async fn put_content(
        &self,
        descriptor: &Descriptor,
        blob: Option<Blob>,
        labels: Labels,
    ) -> Result<(), Error> {
        match self.write(descriptor, blob, labels.clone()).await {
            Err(e) if e.is_already_there() => self.label_content(&descriptor.digest, labels).await,
            Err(e) => {
                // What cannot become this blob is not to be taken up again.
                let message = Abort { reference: reference(descriptor) };
                let _ = self.call::<_, Empty>("/containerd.services.content.v1.Content/Abort", message).await;
                Err(e)
            }
            done => done,
        }
    }

    async fn write(&self, descriptor: &Descriptor, blob: Option<Blob>, labels: Labels) -> Result<(), Error> {
        let (sender, receiver) = mpsc::channel::<WriteContent>(AHEAD);
        let messages = stream::unfold(receiver, |mut r| async { r.recv().await.map(|m| (m, r)) });
        let total = i64::try_from(descriptor.size).unwrap_or(i64::MAX);
        let message = |action, offset, data| WriteContent {
            action,
            reference: reference(descriptor),
            total,
            expected: descriptor.digest.clone(),
            offset,
            data,
            labels: Labels::new(),
        };
        let first = message(STAT, 0, Vec::new());
        // The channel takes it: nothing else is in it yet.
        let _ = sender.send(first).await;
        let mut answers =
            self.talk::<_, Written>("/containerd.services.content.v1.Content/Write", messages).await?;
        let there = match answers.next().await {
            Some(answer) => answer?.offset,
            None => return Err(ended()),
        };
        let commit = WriteContent { labels, ..message(COMMIT, total, Vec::new()) };
        let feed = async move {
            if there < total
                && let Some(blob) = blob
            {
                let mut source = Chunks::new(blob, there, total);
                while let Some((offset, data)) = source.next()? {
                    if sender.send(message(WRITE, offset, data)).await.is_err() {
                        break;
                    }
                }
            }
            let _ = sender.send(commit).await;
            Ok::<(), std::io::Error>(())
        };
        let drain = async {
            while let Some(answer) = answers.next().await {
                if answer?.action == COMMIT {
                    return Ok(());
                }
            }
            Err(ended())
        };
        let (fed, drained) = tokio::join!(feed, drain);
        fed.map_err(|e| Error::Said(tonic::Status::internal(format!("read {}: {e}", descriptor.digest))))?;
        drained
    }
}

fn ended() -> Error {
    Error::Connect("it ended the transfer".to_owned())
}

fn reference(descriptor: &Descriptor) -> String {
    format!("manykube-{}", descriptor.digest)
}

struct Chunks {
    blob: Blob,
    offset: i64,
    total: i64,
    placed: bool,
}

impl Chunks {
    fn new(blob: Blob, offset: i64, total: i64) -> Chunks {
        Chunks { blob, offset, total, placed: false }
    }

    fn next(&mut self) -> std::io::Result<Option<(i64, Vec<u8>)>> {
        if !self.placed {
            self.blob.file.seek(SeekFrom::Start(self.blob.start + self.offset.unsigned_abs()))?;
            self.placed = true;
        }
        let left = usize::try_from(self.total - self.offset).unwrap_or(0);
        let mut data = vec![0; left.min(CHUNK)];
        let mut length = 0;
        while length < data.len() {
            match self.blob.file.read(&mut data[length..])? {
                0 => break,
                read => length += read,
            }
        }
        data.truncate(length);
        let at = self.offset;
        self.offset += i64::try_from(length).unwrap_or(0);
        Ok((length > 0).then_some((at, data)))
    }
}
