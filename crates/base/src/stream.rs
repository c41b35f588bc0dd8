//! A connection, whatever it is made of.

use tokio::io::{AsyncRead, AsyncWrite};

/// Nothing may rely on closing one direction only.
pub type Stream = Box<dyn ByteStream>;

pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}
