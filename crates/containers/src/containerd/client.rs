//! The connection, and one call on it.

use std::time::Duration;

use futures::Stream;
use hyper_util::rt::TokioIo;
use prost::Message;
use protocol::{Failed, Grpc, root_cause};
use tokio::io::{AsyncRead, AsyncWrite};
use tonic::transport::{Endpoint, Uri};
use tonic::{Code, Request, Status, Streaming};

/// The namespace in containerd that Kubernetes uses.
const NAMESPACE: &str = "k8s.io";
/// containerd answers at once or, while it applies a layer, when that is done.
const CONNECT: Duration = Duration::from_secs(5);
/// A list of images may be long.
const LONGEST: usize = 64 << 20;
/// How much of a blob may come before it is handed on.
const WINDOW: u32 = 4 << 20;
/// The same for all calls of a connection: a few that are not read stop no other.
const ALL_WINDOWS: u32 = 1 << 30;
/// A transfer in which nothing comes for so long has failed.
pub(super) const SILENCE: Duration = Duration::from_secs(if cfg!(test) { 2 } else { 20 });

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("containerd does not answer: {0}")]
    Connect(String),
    #[error("{}", .0.message())]
    Said(Status),
    /// What cannot be trusted is not used.
    #[error("{0}")]
    Unsound(String),
    #[error("{0}")]
    Read(#[from] std::io::Error),
}

impl Error {
    pub fn is_not_found(&self) -> bool {
        matches!(self, Error::Said(status) if status.code() == Code::NotFound)
    }

    /// By another one who writes the same. A connection that is lost has the same code.
    pub fn is_locked(&self) -> bool {
        matches!(self, Error::Said(status) if status.code() == Code::Unavailable && status.message().contains(" locked for "))
    }

    pub fn is_already_there(&self) -> bool {
        matches!(self, Error::Said(status) if status.code() == Code::AlreadyExists)
    }
}

impl From<Failed> for Error {
    fn from(failed: Failed) -> Error {
        match failed {
            Failed::Connect(why) => Error::Connect(why),
            Failed::Said(status) => Error::Said(status),
        }
    }
}

impl From<Status> for Error {
    fn from(status: Status) -> Error {
        Error::Said(status)
    }
}

/// What comes within the limit.
pub(super) async fn within<T, E: Into<Error>>(
    limit: Duration,
    what: &str,
    coming: impl Future<Output = Result<T, E>>,
) -> Result<T, Error> {
    match tokio::time::timeout(limit, coming).await {
        Ok(come) => come.map_err(Into::into),
        Err(_) => Err(Error::Connect(format!("no {what} within {} s", limit.as_secs()))),
    }
}

#[derive(Debug, Clone)]
pub struct Client {
    grpc: Grpc,
    /// What is made belongs to this lease.
    lease: Option<String>,
}

impl Client {
    /// `dial` opens a stream to its socket, also again after containerd was restarted.
    pub async fn connect<F, R, S>(dial: F) -> Result<Client, Error>
    where
        F: Fn() -> R + Send + 'static,
        R: Future<Output = std::io::Result<S>> + Send + 'static,
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let connector = tower::service_fn(move |_: Uri| {
            let dialled = dial();
            async move { Ok::<_, std::io::Error>(TokioIo::new(dialled.await?)) }
        });
        // The address is only a name: the connector knows where to go.
        let endpoint = Endpoint::from_static("http://containerd")
            .connect_timeout(CONNECT)
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(ALL_WINDOWS);
        let channel = tokio::time::timeout(CONNECT, endpoint.connect_with_connector(connector)).await;
        let channel = channel.map_err(|_| Error::Connect(format!("within {} s", CONNECT.as_secs())))?;
        let channel = channel.map_err(|e| Error::Connect(root_cause(&e)))?;
        Ok(Client { grpc: Grpc { channel, longest: LONGEST }, lease: None })
    }

    pub(super) fn under(&self, lease: &str) -> Client {
        Client { grpc: self.grpc.clone(), lease: Some(lease.to_owned()) }
    }

    fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        let headers = request.metadata_mut();
        headers.insert("containerd-namespace", tonic::metadata::MetadataValue::from_static(NAMESPACE));
        if let Some(lease) = self.lease.as_deref().and_then(|l| l.parse().ok()) {
            headers.insert("containerd-lease", lease);
        }
        request
    }

    pub(super) async fn call<Q, A>(&self, method: &'static str, message: Q) -> Result<A, Error>
    where
        Q: Message + Send + Sync + 'static,
        A: Message + Default + Send + Sync + 'static,
    {
        Ok(self.grpc.unary(method, self.request(message)).await?)
    }

    pub(super) async fn listen<Q, A>(&self, method: &'static str, message: Q) -> Result<Streaming<A>, Error>
    where
        Q: Message + Send + Sync + 'static,
        A: Message + Default + Send + Sync + 'static,
    {
        Ok(self.grpc.listen(method, self.request(message)).await?)
    }

    pub(super) async fn talk<Q, A>(
        &self,
        method: &'static str,
        messages: impl Stream<Item = Q> + Send + 'static,
    ) -> Result<Streaming<A>, Error>
    where
        Q: Message + Send + Sync + 'static,
        A: Message + Default + Send + Sync + 'static,
    {
        Ok(self.grpc.talk(method, self.request(messages)).await?)
    }
}
