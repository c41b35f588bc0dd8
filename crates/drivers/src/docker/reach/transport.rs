//! A client of the engine over connections that we make ourselves. They are kept while nobody uses them: to make one
//! may take a greeting of several messages, or a process.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bollard::errors::Error;
use bollard::{API_DEFAULT_VERSION, BollardRequest, Docker as Client};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::address::PATIENCE_SECONDS;

/// What HTTP calls the host, which nobody looks at.
const NAME: &str = "http://engine";

pub fn client<D, F, S>(dial: D) -> Result<Client, Error>
where
    D: Fn() -> F + Clone + Send + Sync + 'static,
    F: Future<Output = io::Result<S>> + Send + 'static,
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let connector = tower::service_fn(move |_: http::Uri| {
        let dialled = dial();
        Box::pin(async { dialled.await.map(|stream| TokioIo::new(Wire(stream))) })
    });
    let pool = hyper_util::client::legacy::Client::builder(TokioExecutor::new()).build(connector);
    let transport = move |request: BollardRequest| {
        let answer = pool.request(request);
        async { answer.await.map_err(Error::from) }
    };
    Client::connect_with_custom_transport(transport, Some(NAME), PATIENCE_SECONDS, API_DEFAULT_VERSION)
}

struct Wire<S>(S);

impl<S> Connection for Wire<S> {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Wire<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Wire<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, data)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
