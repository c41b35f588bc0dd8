//! Between archives, which are written and read by programs that wait, and the engine's streams.

use std::io::{self, Read, Write};
use std::time::Duration;

use anyhow::Result;
use bollard::Docker as Client;
use bollard::errors::Error;
use bytes::Bytes;
use futures::channel::mpsc as feed;
use futures::{SinkExt as _, Stream, TryStreamExt as _};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

/// How much is kept for whoever is the slower one.
const CHUNKS: usize = 8;
const CHUNK: usize = 1 << 20;
/// A line may be slow; that the other side is gone is noticed by other means.
const UPLOAD: Duration = Duration::from_secs(12 * 60 * 60);

/// As engines read them: Docker's knows no files with holes.
pub fn archive<W: Write>(to: W) -> tar::Builder<W> {
    let mut tar = tar::Builder::new(to);
    tar.sparse(false);
    tar
}

/// For requests with much to send: the client's time-out is for all of a request.
pub fn unhurried(client: &Client) -> Client {
    client.clone().with_timeout(UPLOAD)
}

/// What is written here is sent to the engine, as fast as it takes it. Unless it is said to be whole at the end, what
/// was sent breaks off.
pub struct Writer {
    sender: feed::Sender<io::Result<Bytes>>,
    runtime: Handle,
    sent: u64,
    told: Box<dyn Fn(u64) + Send>,
    whole: bool,
}

/// The writer is for another thread.
pub fn to_engine() -> (Writer, impl Stream<Item = io::Result<Bytes>> + Send + 'static) {
    let (sender, receiver) = feed::channel(CHUNKS);
    let told = Box::new(|_| ());
    (Writer { sender, runtime: Handle::current(), sent: 0, told, whole: false }, receiver)
}

impl Writer {
    /// How much was sent.
    pub fn telling(mut self, told: impl Fn(u64) + Send + 'static) -> Writer {
        self.told = Box::new(told);
        self
    }

    /// Nothing goes through after that. The request fails, so the engine does not take what it has for all.
    fn break_off(&mut self) {
        let error = io::Error::other("what was to be sent could not be read");
        // A new sender has room for one, however many wait.
        let _ = self.sender.clone().try_send(Err(error));
        self.sender.close_channel();
    }
}

impl Write for Writer {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let sent = self.runtime.block_on(self.sender.send(Ok(Bytes::copy_from_slice(data))));
        sent.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        self.sent += data.len() as u64;
        (self.told)(self.sent);
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if !self.whole {
            self.break_off();
        }
    }
}

/// On its way to the engine.
pub type Archive = tar::Builder<io::BufWriter<Writer>>;

/// All of an archive, or a stream that breaks off.
pub fn pack(writer: Writer, fill: impl FnOnce(&mut Archive) -> Result<()>) -> Result<()> {
    let mut tar = archive(io::BufWriter::with_capacity(CHUNK, writer));
    if let Err(error) = fill(&mut tar) {
        // Before the builder goes, which ends its archive as if it were whole.
        tar.get_mut().get_mut().break_off();
        return Err(error);
    }
    let mut buffer = tar.into_inner()?;
    buffer.flush()?;
    buffer.get_mut().whole = true;
    Ok(())
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
    ended: bool,
}

pub fn from_engine() -> (mpsc::Sender<Bytes>, Reader) {
    let (sender, receiver) = mpsc::channel(CHUNKS);
    (sender, Reader { receiver, current: Bytes::new(), ended: false })
}

/// To the reader, who is told by a last, empty part that this is all.
pub async fn hand_on(
    mut stream: impl Stream<Item = Result<Bytes, Error>> + Unpin,
    sender: mpsc::Sender<Bytes>,
) -> Result<(), Error> {
    while let Some(part) = stream.try_next().await? {
        // Whoever does not read any more says why.
        if !part.is_empty() && sender.send(part).await.is_err() {
            return Ok(());
        }
    }
    let _ = sender.send(Bytes::new()).await;
    Ok(())
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() && !self.ended {
            // Half of an archive may look whole.
            let next = self.receiver.blocking_recv().ok_or(io::ErrorKind::UnexpectedEof)?;
            self.ended = next.is_empty();
            self.current = next;
        }
        let length = buffer.len().min(self.current.len());
        buffer[..length].copy_from_slice(&self.current.split_to(length));
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::StreamExt as _;

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

    /// What the engine gets, and whether the request ends well.
    async fn got(fill: impl FnOnce(&mut Archive) -> Result<()> + Send + 'static) -> (Vec<u8>, bool) {
        let (writer, stream) = to_engine();
        let packing = tokio::task::spawn_blocking(move || pack(writer, fill));
        let (mut bytes, mut well) = (Vec::new(), true);
        let mut stream = std::pin::pin!(stream);
        while let Some(part) = stream.next().await {
            match part {
                Ok(part) => bytes.extend_from_slice(&part),
                Err(_) => well = false,
            }
        }
        assert_eq!(packing.await.unwrap().is_ok(), well);
        (bytes, well)
    }

    fn add(tar: &mut Archive, name: &str, size: usize) -> Result<()> {
        let mut header = tar::Header::new_gnu();
        header.set_size(size as u64);
        Ok(tar.append_data(&mut header, name, vec![1; size].as_slice())?)
    }

    #[tokio::test]
    async fn half_an_archive_has_no_end() {
        // More than the stream keeps, so that it is full when it breaks off.
        let size = 20 * CHUNK;
        let (whole, well) = got(move |tar| add(tar, "a", size)).await;
        assert!(well && whole.ends_with(&[0; 1024]));
        let (half, well) =
            got(move |tar| add(tar, "a", size).and_then(|()| anyhow::bail!("unreadable"))).await;
        assert!(!well && half.len() < whole.len() && !half.ends_with(&[0; 1024]));
        // One that was never begun is no empty one.
        let (writer, stream) = to_engine();
        drop(writer);
        let parts: Vec<_> = stream.collect().await;
        assert!(matches!(parts.as_slice(), [Err(_)]));
    }
    #[tokio::test]
    async fn what_breaks_off_has_no_end_either() {
        let read = async |parts: Vec<Result<Bytes, Error>>| {
            let (sender, mut reader) = from_engine();
            let reading = tokio::task::spawn_blocking(move || {
                let mut all = String::new();
                reader.read_to_string(&mut all).map(|_| all)
            });
            let handed = hand_on(futures::stream::iter(parts), sender).await;
            assert_eq!(handed.is_ok(), reading.await.unwrap().is_ok_and(|all| all == "ab"));
            handed.is_ok()
        };
        let part = |text: &'static str| Ok(Bytes::from_static(text.as_bytes()));
        assert!(read(vec![part("a"), part(""), part("b")]).await);
        assert!(!read(vec![part("a"), part("b"), Err(Error::RequestTimeoutError)]).await);
    }
    #[tokio::test]
    async fn an_engine_knows_that_a_request_broke_off() {
        use tokio::io::AsyncReadExt as _;
        let sent = async |whole: bool| {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let host = format!("tcp://{}", listener.local_addr().unwrap());
            let engine = tokio::spawn(async move {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n0\r\n\r\n") && stream.read_buf(&mut request).await.unwrap() > 0
                {
                }
                request
            });
            let client = Client::connect_with_http(&host, 5, bollard::API_DEFAULT_VERSION).unwrap();
            let (writer, stream) = to_engine();
            let fill = move |tar: &mut Archive| {
                add(tar, "a", 2 * CHUNK)?;
                if whole { Ok(()) } else { anyhow::bail!("unreadable") }
            };
            let packing = tokio::task::spawn_blocking(move || pack(writer, fill));
            let options =
                bollard::query_parameters::CreateImageOptionsBuilder::default().from_src("-").build();
            let body = bollard::body_try_stream(stream);
            let answer = client.create_image(Some(options), Some(body), None).try_collect::<Vec<_>>().await;
            assert!(answer.is_err(), "it never answers");
            assert_eq!(packing.await.unwrap().is_ok(), whole);
            engine.await.unwrap()
        };
        assert!(sent(true).await.ends_with(b"\r\n0\r\n\r\n"));
        assert!(!sent(false).await.ends_with(b"\r\n0\r\n\r\n"));
    }
}
