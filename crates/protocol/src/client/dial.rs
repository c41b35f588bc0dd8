//! A byte stream to a port or socket that the node reaches.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::{SinkExt as _, StreamExt as _, stream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc;
use tokio_util::io::{CopyToBytes, SinkWriter, StreamReader};
use tokio_util::sync::PollSender;

use super::{Error, Node};
use crate::messages::Part;
use crate::{PART, calls};

/// Parts that may be under way.
const AHEAD: usize = 8;

type Reader = Pin<Box<dyn AsyncRead + Send>>;
type Writer = Pin<Box<dyn AsyncWrite + Send>>;

/// Ends with the node, with the other side, or when it is dropped.
pub struct Connection {
    reader: Reader,
    writer: Writer,
}

impl Node {
    /// Connects to the first of these targets that answers: `tcp:ADDRESS:PORT` or `unix:PATH`.
    pub async fn dial(&self, targets: &[String]) -> Result<Connection, Error> {
        let (sender, receiver) = mpsc::channel::<Bytes>(AHEAD);
        let first = Part { data: Bytes::new(), targets: targets.to_vec() };
        let data = stream::unfold(receiver, |mut r| async { Some((r.recv().await?, r)) });
        let data = data.map(|data| Part { data, targets: Vec::new() });
        let answers = self.talk::<Part, Part>(calls::DIAL, stream::iter([first]).chain(data)).await?;
        let answers = answers.map(|part| part.map(|p| p.data).map_err(io::Error::other));
        let sender = PollSender::new(sender).sink_map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe));
        Ok(Connection {
            reader: Box::pin(StreamReader::new(answers)),
            writer: Box::pin(SinkWriter::new(CopyToBytes::new(sender))),
        })
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.reader.as_mut().poll_read(cx, buf)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        // A message has a longest size.
        self.writer.as_mut().poll_write(cx, &data[..data.len().min(PART)])
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.writer.as_mut().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.writer.as_mut().poll_shutdown(cx)
    }
}
