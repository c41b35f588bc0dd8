//! One question to an API server over HTTPS, as the administrator.

use std::net::SocketAddrV4;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Where to ask, and as whom.
#[derive(Clone)]
pub struct Endpoint {
    address: SocketAddrV4,
    tls: TlsConnector,
}

pub type Connection = TlsStream<TcpStream>;

pub struct Answer {
    pub status: u16,
    /// The connection takes another question.
    pub connection: Option<Connection>,
}

impl Endpoint {
    /// The files are those that a kubeconfig names.
    pub fn new(address: SocketAddrV4, authority: &Path, certificate: &Path, key: &Path) -> Result<Endpoint> {
        let mut roots = RootCertStore::empty();
        for ca in CertificateDer::pem_file_iter(authority).context("read the authority")? {
            roots.add(ca.context("read the authority")?).context("trust the authority")?;
        }
        let chain: Vec<_> = CertificateDer::pem_file_iter(certificate)
            .context("read the certificate")?
            .collect::<Result<_, _>>()
            .context("read the certificate")?;
        let key = PrivateKeyDer::from_pem_file(key).context("read the key")?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, key)?;
        // Each connection is that of a client which was not here before.
        config.resumption = Resumption::disabled();
        Ok(Endpoint { address, tls: TlsConnector::from(Arc::new(config)) })
    }

    pub async fn connect(&self) -> Result<Connection> {
        let tcp = TcpStream::connect(self.address).await.context("connect")?;
        tcp.set_nodelay(true).context("connect")?;
        let name = ServerName::IpAddress((*self.address.ip()).into());
        self.tls.connect(name, tcp).await.context("agree on TLS")
    }

    /// `body` makes it a POST.
    pub async fn ask(&self, mut connection: Connection, path: &str, body: Option<&str>) -> Result<Answer> {
        let method = if body.is_some() { "POST" } else { "GET" };
        let body = body.unwrap_or_default();
        let question = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        connection.write_all(question.as_bytes()).await.context("ask")?;
        let mut answer = Vec::new();
        loop {
            if connection.read_buf(&mut answer).await.context("read the answer")? == 0 {
                bail!("the connection was closed before the answer");
            }
            let Some(head) = Head::parse(&answer)? else { continue };
            // Who answers without a length, or with a long answer, is not asked again on this one.
            let Some(end) = head.end else { return Ok(Answer { status: head.status, connection: None }) };
            if answer.len() >= end {
                return Ok(Answer { status: head.status, connection: Some(connection) });
            }
        }
    }
}

#[derive(Debug, PartialEq)]
struct Head {
    status: u16,
    /// Where the body ends, if that is said.
    end: Option<usize>,
}

impl Head {
    /// `None` while there is not all of it.
    fn parse(answer: &[u8]) -> Result<Option<Head>> {
        let Some(size) = answer.windows(4).position(|w| w == b"\r\n\r\n") else { return Ok(None) };
        let text = std::str::from_utf8(&answer[..size]).context("read the head of the answer")?;
        let mut lines = text.split("\r\n");
        let first = lines.next().unwrap_or_default();
        let status = first.split(' ').nth(1).and_then(|s| s.parse().ok());
        let status = status.with_context(|| format!("understand {first:?}"))?;
        let length = lines.filter_map(|l| l.split_once(':')).find_map(|(name, value)| {
            let found = name.eq_ignore_ascii_case("content-length");
            found.then(|| value.trim().parse::<usize>().ok()).flatten()
        });
        Ok(Some(Head { status, end: length.map(|length| size + 4 + length) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_of_answers() {
        let head = |text: &str| Head::parse(text.as_bytes()).unwrap();
        assert_eq!(
            head("HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}"),
            Some(Head { status: 201, end: Some(45) })
        );
        assert_eq!(
            head("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
            Some(Head { status: 200, end: None })
        );
        assert_eq!(head("HTTP/1.1 200 OK\r\nContent"), None);
        assert!(Head::parse(b"nonsense\r\n\r\n").is_err());
    }
}
