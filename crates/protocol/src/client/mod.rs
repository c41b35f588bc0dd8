//! The host's end: a node that can be asked.

mod dial;
mod exec;
mod faults;
mod files;
mod grpc;
mod stream;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::Stream;
use hyper_util::rt::TokioIo;
use model::node_spec::NodeState;
use prost::Message;
use tokio::io::{AsyncRead, AsyncWrite};
use tonic::transport::{Endpoint, Uri};
use tonic::{Code, Request, Status, Streaming};

pub use self::dial::Connection;
pub use self::exec::{Exec, ExecEvent, Output, Stdin};
pub use self::files::{FileDigest, FileInfo, PutError, Received};
pub use self::grpc::{Failed, Grpc, root_cause};
use self::stream::Watched;
use crate::messages::{Empty, State};
use crate::{ALL_WINDOWS, LONGEST, WINDOW, calls};

/// An agent answers at once, also on a busy host.
const GREETING: Duration = Duration::from_secs(10);

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the agent of {machine} is older than this command: stop and start the node, then try again")]
    Old { machine: String },
    #[error("the agent of {machine} does not answer: {why}")]
    Silent { machine: String, why: String },
    #[error("{machine}: {why}")]
    NotFound { machine: String, why: String },
    #[error("{machine}: {why}")]
    Refused { machine: String, why: String },
}

impl Error {
    pub fn is_not_found(&self) -> bool {
        matches!(self, Error::NotFound { .. })
    }
}

/// A connection to the agent of one node. Any number of calls may be under way on it.
#[derive(Debug, Clone)]
pub struct Node {
    grpc: Grpc,
    machine: String,
    ended: Arc<AtomicBool>,
}

impl Node {
    /// Speaks to the agent at the other end of `stream`.
    pub async fn open<S>(machine: &str, stream: S) -> Result<Node, Error>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let silent = |why: String| Error::Silent { machine: machine.to_owned(), why };
        let ended = Arc::new(AtomicBool::new(false));
        let stream = Mutex::new(Some(TokioIo::new(Watched { stream, ended: ended.clone() })));
        // There is one stream. When it has ended, so has this connection.
        let connector = tower::service_fn(move |_: Uri| {
            let taken = stream.lock().unwrap_or_else(PoisonError::into_inner).take();
            async move { taken.ok_or_else(|| io::Error::from(io::ErrorKind::ConnectionAborted)) }
        });
        let endpoint = Endpoint::from_static("http://node")
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(ALL_WINDOWS);
        let opened = tokio::time::timeout(GREETING, endpoint.connect_with_connector(connector)).await;
        let opened = opened.map_err(|_| silent(format!("within {} s", GREETING.as_secs())))?;
        let channel = opened.map_err(|e| silent(root_cause(&e)))?;
        Ok(Node { grpc: Grpc { channel, longest: LONGEST }, machine: machine.to_owned(), ended })
    }

    pub fn machine(&self) -> &str {
        &self.machine
    }

    /// Whether the stream has not ended.
    pub fn is_open(&self) -> bool {
        !self.ended.load(Ordering::Relaxed)
    }

    pub async fn state(&self) -> Result<NodeState, Error> {
        let answer: State = self.call(calls::STATE, Empty {}).await?;
        serde_json::from_slice(&answer.json)
            .map_err(|e| self.refused(format!("its state is not readable: {e}")))
    }

    fn refused(&self, why: String) -> Error {
        Error::Refused { machine: self.machine.clone(), why }
    }

    fn error(&self, status: &Status) -> Error {
        let machine = self.machine.clone();
        match status.code() {
            Code::Unimplemented => Error::Old { machine },
            Code::NotFound => Error::NotFound { machine, why: status.message().to_owned() },
            Code::Unavailable | Code::Cancelled | Code::Unknown => {
                Error::Silent { machine, why: root_cause(status) }
            }
            _ => Error::Refused { machine, why: status.message().to_owned() },
        }
    }

    fn failed(&self, failed: Failed) -> Error {
        match failed {
            Failed::Connect(why) => Error::Silent { machine: self.machine.clone(), why },
            Failed::Said(status) => self.error(&status),
        }
    }

    async fn call<Q, A>(&self, call: &'static str, message: Q) -> Result<A, Error>
    where
        Q: Message + Send + Sync + 'static,
        A: Message + Default + Send + Sync + 'static,
    {
        self.grpc.unary(call, Request::new(message)).await.map_err(|e| self.failed(e))
    }

    async fn listen<Q, A>(&self, call: &'static str, message: Q) -> Result<Streaming<A>, Error>
    where
        Q: Message + Send + Sync + 'static,
        A: Message + Default + Send + Sync + 'static,
    {
        self.grpc.listen(call, Request::new(message)).await.map_err(|e| self.failed(e))
    }

    async fn talk<Q, A>(
        &self,
        call: &'static str,
        messages: impl Stream<Item = Q> + Send + 'static,
    ) -> Result<Streaming<A>, Error>
    where
        Q: Message + Send + Sync + 'static,
        A: Message + Default + Send + Sync + 'static,
    {
        self.grpc.talk(call, Request::new(messages)).await.map_err(|e| self.failed(e))
    }
}
