//! A double of an API server: says over TLS that it is well, and who it is.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

pub const PORT: u16 = 8443;
/// For so long it works on a question, and answers no other.
pub const BUSY: Duration = Duration::from_secs(3);

pub fn run(address: &str) -> Result<()> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(serve(address.to_owned()))
}

async fn serve(me: String) -> Result<()> {
    let certified = rcgen::generate_simple_self_signed(vec![me.clone()])?;
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key.into())?;
    let tls = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind(("0.0.0.0", PORT)).await.context("listen")?;
    loop {
        let (stream, _) = listener.accept().await?;
        let (tls, me) = (tls.clone(), me.clone());
        tokio::spawn(async move {
            let _ = talk(tls, stream, me).await;
        });
    }
}

async fn talk(tls: TlsAcceptor, stream: TcpStream, me: String) -> Result<()> {
    let mut stream = tls.accept(stream).await?;
    let mut question = Vec::new();
    loop {
        question.clear();
        while !question.ends_with(b"\r\n\r\n") {
            if stream.read_buf(&mut question).await? == 0 {
                return Ok(());
            }
        }
        if question.starts_with(b"GET /never ") {
            tokio::time::sleep(Duration::MAX).await;
        }
        if question.starts_with(b"GET /busy ") {
            // No other is answered meanwhile: there is one thread.
            let began = Instant::now();
            while began.elapsed() < BUSY {}
        }
        let body = if question.starts_with(b"GET /who ") { me.as_str() } else { "ok" };
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        stream.write_all(answer.as_bytes()).await?;
        stream.flush().await?;
    }
}
