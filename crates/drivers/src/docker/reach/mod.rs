//! How an engine is reached: by a socket, by TCP with and without TLS, by SSH.

mod address;
mod context;
mod peer;
mod ssh;
mod ssh_refused;
mod ssh_session;
mod tcp;
mod tls;
mod transport;

pub use address::Address;
