//! Between archives, which are written and read by programs that wait, and the engine's streams.

use std::io::{self, Read, Write};

use bytes::Bytes;
use futures::channel::mpsc as feed;
use futures::{SinkExt as _, Stream};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

/// How much is kept for whoever is the slower one.
const CHUNKS: usize = 8;

/// What is written here is sent to the engine, as fast as it takes it.
pub struct Writer {
    sender: feed::Sender<io::Result<Bytes>>,
    runtime: Handle,
}

/// The writer is for another thread.
pub fn to_engine() -> (Writer, impl Stream<Item = io::Result<Bytes>> + Send + 'static) {
    let (sender, receiver) = feed::channel(CHUNKS);
    (Writer { sender, runtime: Handle::current() }, receiver)
}

impl Write for Writer {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let sent = self.runtime.block_on(self.sender.send(Ok(Bytes::copy_from_slice(data))));
        sent.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whoever reads what we write did not want to have more.
pub fn gave_up(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<io::Error>();
    io.is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
}

/// What the engine hands out is read here, in another thread.
pub struct Reader {
    receiver: mpsc::Receiver<Bytes>,
    current: Bytes,
}

pub fn from_engine() -> (mpsc::Sender<Bytes>, Reader) {
    let (sender, receiver) = mpsc::channel(CHUNKS);
    (sender, Reader { receiver, current: Bytes::new() })
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() {
            match self.receiver.blocking_recv() {
                Some(next) => self.current = next,
                None => return Ok(0),
            }
        }
        let length = buffer.len().min(self.current.len());
        buffer[..length].copy_from_slice(&self.current.split_to(length));
        Ok(length)
    }
}
