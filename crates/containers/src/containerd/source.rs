//! Where the bytes of a blob come from.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};

use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use tonic::Streaming;

use super::client::{Client, Error, SILENCE, within};
use super::messages::{PartOfContent, ReadContent};
use crate::oci::Descriptor;

/// containerd takes messages of up to 16 MiB; one this long costs nothing to speak of.
const PART: u64 = 1 << 20;
/// For messages.
const PART_NAME: &str = "part of a blob";

/// Bytes somewhere in a file.
#[derive(Debug)]
pub struct Blob {
    pub file: File,
    pub start: u64,
}

pub enum Source {
    File(Blob),
    Data(Bytes),
    /// The store of another node.
    Store(Client),
}

impl Source {
    /// What the descriptor says that there is from `offset` on, and no byte more or less.
    pub(super) async fn parts(
        self,
        of: &Descriptor,
        offset: i64,
    ) -> Result<BoxStream<'static, Result<Bytes, Error>>, Error> {
        let left = of.size.saturating_sub(offset.unsigned_abs());
        match self {
            Source::File(mut blob) => {
                blob.file.seek(SeekFrom::Start(blob.start + offset.unsigned_abs()))?;
                Ok(stream::try_unfold((blob.file, left), from_file).boxed())
            }
            Source::Data(data) => {
                let rest = data.slice(data.len().min(usize::try_from(offset).unwrap_or(0))..);
                Ok(stream::iter([Ok(rest)]).boxed())
            }
            Source::Store(client) => {
                let size = i64::try_from(left).unwrap_or(i64::MAX);
                let message = ReadContent { digest: of.digest.clone(), offset, size };
                let answers = client.listen("/containerd.services.content.v1.Content/Read", message);
                let answers = within(SILENCE, PART_NAME, answers).await?;
                Ok(stream::try_unfold((answers, left), from_store).boxed())
            }
        }
    }
}

async fn from_file((file, left): (File, u64)) -> Result<Option<(Bytes, (File, u64))>, Error> {
    let part = left.min(PART);
    let mut data = Vec::with_capacity(usize::try_from(part).unwrap_or(0));
    (&file).take(part).read_to_end(&mut data)?;
    let left = left - data.len() as u64;
    Ok((!data.is_empty()).then(|| (data.into(), (file, left))))
}

type Answers = Streaming<PartOfContent>;

async fn from_store((mut answers, left): (Answers, u64)) -> Result<Option<(Bytes, (Answers, u64))>, Error> {
    if left == 0 {
        return Ok(None);
    }
    let part = within(SILENCE, PART_NAME, answers.message()).await?.filter(|part| !part.data.is_empty());
    let part = part.ok_or_else(|| Error::Unsound("a blob is shorter than it was said".into()))?;
    let left = left.checked_sub(part.data.len() as u64);
    let left = left.ok_or_else(|| Error::Unsound("a blob is longer than it was said".into()))?;
    Ok(Some((part.data, (answers, left))))
}
