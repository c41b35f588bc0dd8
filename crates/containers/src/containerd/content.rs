//! The content store: blobs by their digest.

use std::time::Duration;

use bytes::Bytes;
use futures::{TryStreamExt as _, stream};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use tonic::Streaming;

use super::client::{Client, Error, SILENCE, within};
use super::messages::{
    Abort, Arriving, COMMIT, ContentInfo, ContentInfoAnswer, Digest, Empty, FieldMask, Filters, Labels, STAT,
    UpdateContent, WRITE, WriteContent, Written,
};
use super::source::Source;
use crate::oci::{self, Descriptor};

/// Messages on their way.
const AHEAD: usize = 4;
/// How often it is asked whether another one has sent a blob.
const AGAIN: Duration = Duration::from_millis(50);
/// Bytes in a second that even a slow disk takes: containerd answers when it has read or synced them.
const SLOW: u64 = 10 << 20;
/// For messages.
const ANSWER: &str = "answer about a blob";

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

    /// One of an image's documents; `None` when it is not in the store. It is what its digest says, or an error.
    pub async fn document(&self, descriptor: &Descriptor) -> Result<Option<Bytes>, Error> {
        sound(descriptor)?;
        if descriptor.size > oci::LONGEST_DOCUMENT {
            return Err(Error::Unsound(format!("{} is no document", descriptor.digest)));
        }
        if self.content(&descriptor.digest).await?.is_none() {
            return Ok(None);
        }
        let parts = Source::Store(self.clone()).parts(descriptor, 0).await?;
        let data = parts.try_fold(Vec::new(), async |mut data, part| {
            data.extend_from_slice(&part);
            Ok(data)
        });
        let data = data.await?;
        if oci::digest(&data) != descriptor.digest {
            return Err(Error::Unsound(format!("{} is something else", descriptor.digest)));
        }
        Ok(Some(data.into()))
    }

    /// Puts a blob into the store. containerd checks its digest. Bytes that it has already are not sent: the whole
    /// blob, or those of an earlier attempt.
    pub async fn put_content(
        &self,
        descriptor: &Descriptor,
        source: Source,
        labels: Labels,
    ) -> Result<(), Error> {
        sound(descriptor)?;
        let done = match self.begin_in_turn(descriptor).await {
            Ok(transfer) => {
                let done = transfer.send(descriptor, source, labels.clone()).await;
                if done.as_ref().is_err_and(|e| !e.is_already_there()) {
                    self.abort(descriptor).await;
                }
                done
            }
            Err(e) => Err(e),
        };
        match done {
            Err(e) if e.is_already_there() => self.label_content(&descriptor.digest, labels).await,
            done => done,
        }
    }

    /// What cannot become this blob is not to be taken up again.
    async fn abort(&self, descriptor: &Descriptor) {
        let message = Abort { reference: reference(descriptor) };
        let done = self.call::<_, Empty>("/containerd.services.content.v1.Content/Abort", message);
        let _ = within(SILENCE, ANSWER, done).await;
    }

    /// Two commands may send the same blob: the second one waits, and finds that it is there.
    /// It waits as long as the first one makes progress.
    async fn begin_in_turn(&self, descriptor: &Descriptor) -> Result<Transfer, Error> {
        let (own, limit) = (reference(descriptor), patience(descriptor));
        let (mut seen, mut since) = (None, Instant::now());
        loop {
            let locked = match within(limit, ANSWER, self.begin(descriptor)).await {
                Err(e) if e.is_locked() => e,
                begun => return begun,
            };
            let arrived = within(SILENCE, ANSWER, self.arrived()).await?;
            let now = arrived.into_iter().find(|(reference, _)| *reference == own);
            if now != seen {
                (seen, since) = (now, Instant::now());
            }
            if since.elapsed() > limit {
                return Err(locked);
            }
            sleep(AGAIN).await;
        }
    }

    async fn begin(&self, descriptor: &Descriptor) -> Result<Transfer, Error> {
        let (sender, receiver) = mpsc::channel::<WriteContent>(AHEAD);
        let messages = stream::unfold(receiver, |mut r| async { r.recv().await.map(|m| (m, r)) });
        // The channel takes it: nothing else is in it yet.
        let _ = sender.send(message(descriptor, STAT, 0, Bytes::new())).await;
        let mut answers =
            self.talk::<_, Written>("/containerd.services.content.v1.Content/Write", messages).await?;
        let there = answers.message().await?.ok_or_else(ended)?.offset;
        Ok(Transfer { sender, answers, there })
    }
}

struct Transfer {
    sender: mpsc::Sender<WriteContent>,
    answers: Streaming<Written>,
    /// Bytes that need not be sent.
    there: i64,
}

impl Transfer {
    async fn send(mut self, descriptor: &Descriptor, source: Source, labels: Labels) -> Result<(), Error> {
        let end = message(descriptor, COMMIT, length(descriptor), Bytes::new());
        let (sender, mut offset) = (self.sender, self.there);
        let feed = async move {
            let mut parts = source.parts(descriptor, offset).await?;
            while let Some(data) = parts.try_next().await? {
                let length = i64::try_from(data.len()).unwrap_or(0);
                if sender.send(message(descriptor, WRITE, offset, data)).await.is_err() {
                    break;
                }
                offset += length;
            }
            let _ = sender.send(WriteContent { labels, ..end }).await;
            Ok::<(), Error>(())
        };
        let drain = async {
            let limit = patience(descriptor);
            while let Some(answer) = within(limit, ANSWER, self.answers.message()).await? {
                if answer.action == COMMIT {
                    return Ok(());
                }
            }
            Err(ended())
        };
        tokio::try_join!(feed, drain).map(drop)
    }
}

fn message(descriptor: &Descriptor, action: i32, offset: i64, data: Bytes) -> WriteContent {
    WriteContent {
        action,
        reference: reference(descriptor),
        total: length(descriptor),
        expected: descriptor.digest.clone(),
        offset,
        data,
        labels: Labels::new(),
    }
}

fn length(descriptor: &Descriptor) -> i64 {
    i64::try_from(descriptor.size).unwrap_or(i64::MAX)
}

fn patience(descriptor: &Descriptor) -> Duration {
    SILENCE + Duration::from_secs(descriptor.size / SLOW)
}

fn sound(descriptor: &Descriptor) -> Result<(), Error> {
    match oci::is_digest(&descriptor.digest) {
        true => Ok(()),
        false => Err(Error::Unsound(format!("{:?} is no digest", descriptor.digest))),
    }
}

fn ended() -> Error {
    Error::Connect("it ended the transfer".to_owned())
}

fn reference(descriptor: &Descriptor) -> String {
    format!("manykube-{}", descriptor.digest)
}
