//! Calls with hand-written messages on a gRPC connection.

use futures::Stream;
use http::uri::PathAndQuery;
use prost::Message;
use tonic::transport::Channel;
use tonic::{Request, Status, Streaming};
use tonic_prost::ProstCodec;

#[derive(Debug, Clone)]
pub struct Grpc {
    pub channel: Channel,
    /// Of an answer.
    pub longest: usize,
}

/// Why a call came to nothing.
#[derive(Debug)]
pub enum Failed {
    Connect(String),
    Said(Status),
}

impl From<Status> for Failed {
    fn from(status: Status) -> Failed {
        Failed::Said(status)
    }
}

impl Grpc {
    async fn ready(&self) -> Result<tonic::client::Grpc<Channel>, Failed> {
        let grpc = tonic::client::Grpc::new(self.channel.clone());
        let mut grpc = grpc.max_decoding_message_size(self.longest);
        grpc.ready().await.map_err(|e| Failed::Connect(root_cause(&e)))?;
        Ok(grpc)
    }

    pub async fn unary<Q, A>(&self, method: &'static str, request: Request<Q>) -> Result<A, Failed>
    where
        Q: Message + Send + Sync + 'static,
        A: Message + Default + Send + Sync + 'static,
    {
        let (path, codec) = (PathAndQuery::from_static(method), ProstCodec::<Q, A>::default());
        Ok(self.ready().await?.unary(request, path, codec).await?.into_inner())
    }

    /// Sends one message, receives several.
    pub async fn listen<Q, A>(
        &self,
        method: &'static str,
        request: Request<Q>,
    ) -> Result<Streaming<A>, Failed>
    where
        Q: Message + Send + Sync + 'static,
        A: Message + Default + Send + Sync + 'static,
    {
        let (path, codec) = (PathAndQuery::from_static(method), ProstCodec::<Q, A>::default());
        Ok(self.ready().await?.server_streaming(request, path, codec).await?.into_inner())
    }

    /// Sends several messages, receives several.
    pub async fn talk<Q, A>(
        &self,
        method: &'static str,
        request: Request<impl Stream<Item = Q> + Send + 'static>,
    ) -> Result<Streaming<A>, Failed>
    where
        Q: Message + Send + Sync + 'static,
        A: Message + Default + Send + Sync + 'static,
    {
        let (path, codec) = (PathAndQuery::from_static(method), ProstCodec::<Q, A>::default());
        Ok(self.ready().await?.streaming(request, path, codec).await?.into_inner())
    }
}

/// What a library's error is about in the end.
pub fn root_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
