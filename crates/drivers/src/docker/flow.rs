//! Between archives, which are written and read by programs that wait, and the engine's streams.

use std::io::{self, Read, Write};

use bytes::Bytes;
use futures::channel::mpsc as feed;
use futures::{SinkExt as _, Stream};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

/// How much is kept for whoever is the slower one.
const CHUNKS: usize = 8;

/// As engines read them: Docker's knows no files with holes.
pub fn archive<W: Write>(to: W) -> tar::Builder<W> {
    let mut tar = tar::Builder::new(to);
    tar.sparse(false);
    tar
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_with_holes_are_files_like_others() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("holes");
        std::fs::File::create(&path).unwrap().set_len(1 << 20).unwrap();
        let mut tar = archive(Vec::new());
        tar.append_path_with_name(&path, "holes").unwrap();
        let packed = tar.into_inner().unwrap();
        let mut packed = tar::Archive::new(packed.as_slice());
        let entry = packed.entries().unwrap().next().unwrap().unwrap();
        assert_eq!(entry.header().entry_type(), tar::EntryType::Regular);
    }
}
