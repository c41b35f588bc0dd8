//! One question to an API server over HTTPS, on a connection that is kept for the next one: a
//! handshake several times a second would cost both sides more than all the rest.

use std::net::SocketAddrV4;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use nix::sys::socket::{setsockopt, sockopt};
use rustls::ClientConfig;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Answers to health questions are short; of one that is not we need only the beginning.
const LARGEST: usize = 16 << 10;

/// Connections with this mark mean this node's own API server, also while a kubelet's are led elsewhere.
/// Not one of the bits that kube-proxy uses.
pub const OWN_API_MARK: u32 = 0x2b;

pub struct Probe {
    target: SocketAddrV4,
    tls: TlsConnector,
    kept: Option<TlsStream<TcpStream>>,
}

impl Probe {
    pub fn new(target: SocketAddrV4) -> Result<Probe> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .context("set TLS up")?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Anybody(provider)))
            .with_no_client_auth();
        Ok(Probe { target, tls: TlsConnector::from(Arc::new(config)), kept: None })
    }

    /// The HTTP status and body of the answer to `GET path`. To be called with a time limit; when
    /// that cuts it short, the connection is not used again.
    pub async fn get(&mut self, path: &str) -> Result<(u16, Vec<u8>)> {
        if let Some(stream) = self.kept.take()
            && let Ok(answer) = self.ask(stream, path).await
        {
            return Ok(answer);
        }
        // The server may have closed the old connection for reasons of its own.
        let socket = TcpSocket::new_v4().context("connect")?;
        setsockopt(&socket, sockopt::Mark, &OWN_API_MARK).context("mark a connection")?;
        let tcp = socket.connect(self.target.into()).await.context("connect")?;
        tcp.set_nodelay(true).context("connect")?;
        let name = ServerName::IpAddress((*self.target.ip()).into());
        let stream = self.tls.connect(name, tcp).await.context("agree on TLS")?;
        self.ask(stream, path).await
    }

    async fn ask(&mut self, mut stream: TlsStream<TcpStream>, path: &str) -> Result<(u16, Vec<u8>)> {
        let question = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.target);
        stream.write_all(question.as_bytes()).await.context("ask")?;
        let mut answer = Vec::new();
        loop {
            if stream.read_buf(&mut answer).await.context("read the answer")? == 0 {
                bail!("the connection was closed before the answer");
            }
            let Some(head) = Head::parse(&answer) else {
                if answer.len() > LARGEST {
                    bail!("the answer is not HTTP");
                }
                continue;
            };
            // Without a length the answer may go on for long: its beginning is enough.
            let Some(length) = head.length else { return Ok((head.status, answer.split_off(head.size))) };
            if answer.len() >= head.size + length {
                self.kept = Some(stream);
                return Ok((head.status, answer.split_off(head.size)));
            }
        }
    }
}

/// What we need of an HTTP answer's head.
#[derive(Debug, PartialEq)]
struct Head {
    status: u16,
    /// Of the head, with the empty line.
    size: usize,
    /// Of the body; `None` when it is not said or the connection ends with it.
    length: Option<usize>,
}

impl Head {
    fn parse(answer: &[u8]) -> Option<Head> {
        let size = answer.windows(4).position(|w| w == b"\r\n\r\n")? + 4;
        let text = std::str::from_utf8(&answer[..size]).ok()?;
        let mut lines = text.split("\r\n");
        let status = lines.next()?.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
        let mut length = None;
        for (name, value) in lines.filter_map(|l| l.split_once(':')) {
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().ok().filter(|n| *n <= LARGEST);
            } else if name.eq_ignore_ascii_case("connection") && value.trim().eq_ignore_ascii_case("close") {
                return Some(Head { status, size, length: None });
            }
        }
        Some(Head { status, size, length })
    }
}

/// Whoever answers on the node's own address is the node's own API server. Nothing secret is sent
/// and nothing that is read decides more than where connections go, so its certificate (which may
/// be renewed at any time) is not looked at.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_of_answers() {
        let head = |text: &str| Head::parse(text.as_bytes());
        let ok = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\n";
        assert_eq!(head(ok), Some(Head { status: 200, size: ok.len(), length: Some(2) }));
        assert_eq!(head(&format!("{ok}ok")).map(|h| h.size), Some(ok.len()));
        assert_eq!(head("HTTP/1.1 200 OK\r\nContent-Len"), None);
        let chunked = "HTTP/1.1 500 Internal Server Error\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(head(chunked), Some(Head { status: 500, size: chunked.len(), length: None }));
        let closed = "HTTP/1.1 403 Forbidden\r\nContent-Length: 9\r\nConnection: close\r\n\r\n";
        assert_eq!(head(closed).and_then(|h| h.length), None);
        assert_eq!(head("SSH-2.0-OpenSSH\r\n\r\n"), None);
    }
}
