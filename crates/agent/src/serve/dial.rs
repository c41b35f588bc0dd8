//! Byte streams to ports and sockets that the node reaches.

use std::net::SocketAddr;
use std::time::Duration;

use futures::{StreamExt as _, stream};
use nix::sys::socket::{setsockopt, sockopt};
use protocol::messages::Part;
use protocol::{Answers, PART};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream, UnixStream};
use tokio::time::timeout;
use tonic::{Status, Streaming};

use crate::vip::OWN_API_MARK;

/// Of several targets, one that does not answer at once is passed by.
const CONNECT: Duration = Duration::from_secs(1);

type Reader = Box<dyn AsyncRead + Send + Unpin>;
type Writer = Box<dyn AsyncWrite + Send + Unpin>;

pub async fn start(mut input: Streaming<Part>) -> Result<Answers<Part>, Status> {
    let targets = input.message().await?.unwrap_or_default().targets;
    let (reader, writer) = first(&targets).await?;
    tokio::spawn(send(input, writer));
    Ok(parts(reader))
}

async fn first(targets: &[String]) -> Result<(Reader, Writer), Status> {
    let mut refused = "no target was named".to_owned();
    for target in targets {
        match timeout(CONNECT, connect(target)).await {
            Ok(Ok(connected)) => return Ok(connected),
            Ok(Err(e)) => refused = format!("connect to {target}: {e}"),
            Err(_) => refused = format!("connect to {target}: no answer within {} s", CONNECT.as_secs()),
        }
    }
    Err(Status::failed_precondition(refused))
}

async fn connect(target: &str) -> std::io::Result<(Reader, Writer)> {
    match target.split_once(':') {
        Some(("tcp", address)) => {
            let stream = tcp(address).await?;
            let (reader, writer) = stream.into_split();
            Ok((Box::new(reader), Box::new(writer)))
        }
        Some(("unix", path)) => {
            let (reader, writer) = UnixStream::connect(path).await?.into_split();
            Ok((Box::new(reader), Box::new(writer)))
        }
        _ => Err(std::io::Error::other("it is neither tcp:ADDRESS:PORT nor unix:PATH")),
    }
}

/// The node's own address means the node itself, also while its kubelet is served by another API server.
async fn tcp(address: &str) -> std::io::Result<TcpStream> {
    let address: SocketAddr = address.parse().map_err(std::io::Error::other)?;
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // Without the right to mark packets there are no such rules either.
    let _ = setsockopt(&socket, sockopt::Mark, &OWN_API_MARK);
    let stream = socket.connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// The end of what the host sends is the end of that direction only: the answer may still come. A call that was dropped
/// is an error here, and closes both.
async fn send(mut input: Streaming<Part>, mut writer: Writer) {
    while let Ok(Some(part)) = input.message().await {
        if writer.write_all(&part.data).await.is_err() {
            return;
        }
    }
    let _ = writer.shutdown().await;
}

fn parts(reader: Reader) -> Answers<Part> {
    let parts = stream::unfold(reader, |mut reader| async {
        let mut buffer = bytes::BytesMut::with_capacity(PART);
        match reader.read_buf(&mut buffer).await {
            Ok(0) => None,
            Ok(_) => Some((Ok(Part { data: buffer.freeze(), targets: Vec::new() }), reader)),
            Err(e) => Some((Err(Status::aborted(e.to_string())), Box::new(tokio::io::empty()) as Reader)),
        }
    });
    parts.boxed()
}
