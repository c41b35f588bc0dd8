//! TCP to an engine. A host that lost its power says nothing, so while nothing comes it is asked whether it is there.

use std::io;
use std::time::Duration;

use bollard::Docker as Client;
use bollard::errors::Error;
use rustix::net::sockopt;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

use super::transport;

const PORT: u16 = 2375;
/// A name may have several addresses, and one that leads nowhere.
const CONNECT: Duration = Duration::from_secs(5);
const SILENCE: Duration = Duration::from_secs(30);
const AGAIN: Duration = Duration::from_secs(10);
const TIMES: u32 = 3;

/// Without TLS.
pub fn client(host: &str) -> Result<Client, Error> {
    let (name, port) = split(host, PORT);
    let name = name.to_owned();
    transport::client(move || {
        let name = name.clone();
        async move { connect(&name, port).await }
    })
}

pub async fn connect(name: &str, port: u16) -> io::Result<TcpStream> {
    let mut why = io::Error::other("its name has no address");
    for address in lookup_host((name, port)).await? {
        match timeout(CONNECT, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return watched(stream),
            Ok(Err(e)) => why = e,
            Err(_) => why = io::Error::new(io::ErrorKind::TimedOut, "its host does not answer"),
        }
    }
    Err(why)
}

fn watched(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_nodelay(true)?;
    sockopt::set_tcp_keepidle(&stream, SILENCE)?;
    sockopt::set_tcp_keepintvl(&stream, AGAIN)?;
    sockopt::set_tcp_keepcnt(&stream, TIMES)?;
    sockopt::set_socket_keepalive(&stream, true)?;
    Ok(stream)
}

/// `HOST[:PORT]`, and what follows is of no meaning.
pub fn split(host: &str, usual: u16) -> (&str, u16) {
    let host = host.split('/').next().unwrap_or_default();
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, port.parse().unwrap_or(usual)),
        _ => (host, usual),
    };
    (name.trim_start_matches('[').trim_end_matches(']'), port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_ports() {
        assert_eq!(split("h:1", PORT), ("h", 1));
        assert_eq!(split("h", PORT), ("h", PORT));
        assert_eq!(split("[fe80::1]:5/", PORT), ("fe80::1", 5));
        assert_eq!(split("[::1]", PORT), ("::1", PORT));
    }

    #[tokio::test]
    async fn connections_are_watched() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = connect("127.0.0.1", listener.local_addr().unwrap().port()).await.unwrap();
        assert!(sockopt::socket_keepalive(&stream).unwrap());
        assert_eq!(sockopt::tcp_keepidle(&stream).unwrap(), SILENCE);
    }
}
