//! The agent's end: calls that come on one byte stream.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::Stream;
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use prost::Message;
use tokio::io::{AsyncRead, AsyncWrite};
use tonic::body::Body;
use tonic::server::Grpc;
use tonic::{Code, Request, Response, Status, Streaming};
use tonic_prost::ProstCodec;

use crate::messages::{
    Digests, Empty, ExecInput, ExecOutput, Fill, GetOutput, Killed, PacketFaults, PacketsDone, Part, Path,
    Paths, Program, PutInput, State,
};
use crate::{ALL_WINDOWS, LONGEST, WINDOW, calls};

/// A host that is gone does not always close its stream: an engine that restarts keeps ours open.
const ASK: Duration = Duration::from_secs(5);
const ANSWER: Duration = Duration::from_secs(10);
/// A window of many parts, and no more than a host asks for at once.
const CALLS: u32 = 1024;

/// What an answer of several messages is.
pub type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// What an agent does for its host.
pub trait Handler: Send + Sync + 'static {
    fn state(&self) -> impl Future<Output = Result<State, Status>> + Send;
    fn exec(
        &self,
        input: Streaming<ExecInput>,
    ) -> impl Future<Output = Result<Answers<ExecOutput>, Status>> + Send;
    fn put(&self, input: Streaming<PutInput>) -> impl Future<Output = Result<Empty, Status>> + Send;
    fn get(&self, path: Path) -> impl Future<Output = Result<Answers<GetOutput>, Status>> + Send;
    fn digests(&self, paths: Paths) -> impl Future<Output = Result<Digests, Status>> + Send;
    fn remove(&self, paths: Paths) -> impl Future<Output = Result<Empty, Status>> + Send;
    fn fill(&self, fill: Fill) -> impl Future<Output = Result<Empty, Status>> + Send;
    fn packets(&self, faults: PacketFaults) -> impl Future<Output = Result<PacketsDone, Status>> + Send;
    fn kill(&self, program: Program) -> impl Future<Output = Result<Killed, Status>> + Send;
    fn dial(&self, input: Streaming<Part>) -> impl Future<Output = Result<Answers<Part>, Status>> + Send;
}

/// Answers until the stream ends.
pub async fn serve<S>(stream: S, handler: impl Handler) -> Result<(), hyper::Error>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let handler = Arc::new(handler);
    let service = service_fn(move |request: http::Request<Incoming>| {
        let handler = handler.clone();
        async move { Ok::<_, Infallible>(answer(handler, request).await) }
    });
    http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(ALL_WINDOWS)
        .max_concurrent_streams(CALLS)
        .keep_alive_interval(ASK)
        .keep_alive_timeout(ANSWER)
        .serve_connection(TokioIo::new(stream), service)
        .await
}

async fn answer<H: Handler>(handler: Arc<H>, request: http::Request<Incoming>) -> http::Response<Body> {
    match request.uri().path() {
        calls::STATE => unary(handler, request, |h, _: Empty| async move { h.state().await }).await,
        calls::DIGESTS => unary(handler, request, |h, m| async move { h.digests(m).await }).await,
        calls::REMOVE => unary(handler, request, |h, m| async move { h.remove(m).await }).await,
        calls::FILL => unary(handler, request, |h, m| async move { h.fill(m).await }).await,
        calls::PACKETS => unary(handler, request, |h, m| async move { h.packets(m).await }).await,
        calls::KILL => unary(handler, request, |h, m| async move { h.kill(m).await }).await,
        calls::GET => listen(handler, request, |h, m| async move { h.get(m).await }).await,
        calls::EXEC => talk(handler, request, |h, m| async move { h.exec(m).await }).await,
        calls::DIAL => talk(handler, request, |h, m| async move { h.dial(m).await }).await,
        calls::PUT => {
            let put = |h: Arc<H>, m| async move {
                let done = h.put(m).await;
                Ok(Box::pin(futures::stream::iter([done])) as Answers<Empty>)
            };
            talk(handler, request, put).await
        }
        _ => Status::new(Code::Unimplemented, "this agent does not know that call").into_http(),
    }
}

fn grpc<A, Q>() -> Grpc<ProstCodec<A, Q>>
where
    Q: Message + Default + Send + Sync + 'static,
    A: Message + Default + Send + Sync + 'static,
{
    Grpc::new(ProstCodec::default()).max_decoding_message_size(LONGEST)
}

/// One message, one answer.
async fn unary<H, Q, A, F>(
    handler: Arc<H>,
    request: http::Request<Incoming>,
    call: impl Fn(Arc<H>, Q) -> F + Send + Sync,
) -> http::Response<Body>
where
    H: Handler,
    Q: Message + Default + Send + Sync + 'static,
    A: Message + Default + Send + Sync + 'static,
    F: Future<Output = Result<A, Status>> + Send,
{
    let service = tower::service_fn(|q: Request<Q>| {
        let answer = call(handler.clone(), q.into_inner());
        async move { answer.await.map(Response::new) }
    });
    grpc::<A, Q>().unary(service, request).await
}

/// One message, several answers.
async fn listen<H, Q, A, F>(
    handler: Arc<H>,
    request: http::Request<Incoming>,
    call: impl Fn(Arc<H>, Q) -> F + Send + Sync,
) -> http::Response<Body>
where
    H: Handler,
    Q: Message + Default + Send + Sync + 'static,
    A: Message + Default + Send + Sync + 'static,
    F: Future<Output = Result<Answers<A>, Status>> + Send,
{
    let service = tower::service_fn(|q: Request<Q>| {
        let answer = call(handler.clone(), q.into_inner());
        async move { answer.await.map(Response::new) }
    });
    grpc::<A, Q>().server_streaming(service, request).await
}

/// Several messages, several answers.
async fn talk<H, Q, A, F>(
    handler: Arc<H>,
    request: http::Request<Incoming>,
    call: impl Fn(Arc<H>, Streaming<Q>) -> F + Send + Sync,
) -> http::Response<Body>
where
    H: Handler,
    Q: Message + Default + Send + Sync + 'static,
    A: Message + Default + Send + Sync + 'static,
    F: Future<Output = Result<Answers<A>, Status>> + Send,
{
    let service = tower::service_fn(|q: Request<Streaming<Q>>| {
        let answer = call(handler.clone(), q.into_inner());
        async move { answer.await.map(Response::new) }
    });
    grpc::<A, Q>().streaming(service, request).await
}

#[cfg(test)]
mod tests {
    use model::injected::{PacketFaults as Faults, Slowness};

    use super::*;
    use crate::{Error, Node};

    /// An agent that answers nothing else.
    struct Endless;

    impl Handler for Endless {
        async fn state(&self) -> Result<State, Status> {
            Ok(State { json: vec![b' '; 2 * LONGEST].into() })
        }
        async fn exec(&self, _: Streaming<ExecInput>) -> Result<Answers<ExecOutput>, Status> {
            let part = crate::messages::exec_output::Kind::Stdout(vec![0; crate::PART].into());
            let part = ExecOutput { kind: Some(part) };
            Ok(Box::pin(futures::stream::repeat_with(move || Ok(part.clone()))))
        }
        async fn put(&self, _: Streaming<PutInput>) -> Result<Empty, Status> {
            Err(Status::unimplemented(""))
        }
        async fn get(&self, _: Path) -> Result<Answers<GetOutput>, Status> {
            Err(Status::unimplemented(""))
        }
        async fn digests(&self, _: Paths) -> Result<Digests, Status> {
            Ok(Digests { files: Vec::new() })
        }
        async fn remove(&self, _: Paths) -> Result<Empty, Status> {
            Err(Status::unimplemented(""))
        }
        async fn fill(&self, _: Fill) -> Result<Empty, Status> {
            Err(Status::unimplemented(""))
        }
        /// It has no netem, and tells of each fault by another answer.
        async fn packets(&self, faults: PacketFaults) -> Result<PacketsDone, Status> {
            let faults: Faults = serde_json::from_slice(&faults.json).unwrap();
            if faults.cut {
                return Err(Status::failed_precondition("nft refused"));
            }
            Ok(PacketsDone { no_delays: faults.slowness.delay_us > 0 })
        }
        async fn kill(&self, _: Program) -> Result<Killed, Status> {
            Err(Status::unimplemented(""))
        }
        async fn dial(&self, _: Streaming<Part>) -> Result<Answers<Part>, Status> {
            Err(Status::unimplemented(""))
        }
    }

    async fn node() -> Node {
        let (host, agent) = tokio::io::duplex(64 << 10);
        tokio::spawn(serve(agent, Endless));
        Node::open("m", host).await.unwrap()
    }

    #[tokio::test]
    async fn what_a_node_says_is_bounded() {
        let node = node().await;
        assert!(node.state().await.is_err(), "a message may not be as long as that");
        assert!(matches!(node.run(&["yes".to_owned()], Vec::new()).await, Err(Error::Refused { .. })));
        assert!(node.digests(vec!["/a".to_owned()]).await.is_err(), "an answer for each file");
    }

    #[tokio::test]
    async fn an_older_agent_is_known_by_what_it_cannot_do() {
        let error = node().await.remove(vec!["/a".to_owned()]).await.unwrap_err();
        assert!(matches!(&error, Error::Old { machine } if machine == "m"), "{error}");
        assert!(error.to_string().contains("stop and start the node"));
        assert!(matches!(node().await.kill("etcd").await, Err(Error::Old { .. })));
    }

    #[tokio::test]
    async fn a_kernel_without_delays_is_no_failure_of_the_node() {
        let node = node().await;
        let slow = |delay_us| Slowness { delay_us, ..Slowness::default() };
        let late = |us| Faults { slowness: slow(us), ..Faults::default() };
        assert!(node.packets(&late(0)).await.unwrap() && !node.packets(&late(5)).await.unwrap());
        let refused = node.packets(&Faults { cut: true, ..Faults::default() }).await.unwrap_err();
        assert!(matches!(&refused, Error::Refused { .. }) && refused.to_string().contains("nft refused"));
    }

    #[tokio::test]
    async fn a_stream_that_is_no_agent() {
        let (host, mut other) = tokio::io::duplex(1024);
        let talk = tokio::spawn(async move {
            let _ =
                tokio::io::AsyncWriteExt::write_all(&mut other, b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        });
        let asked = async { Node::open("m", host).await?.state().await };
        assert!(matches!(asked.await, Err(Error::Silent { .. })));
        talk.await.unwrap();
    }
}
