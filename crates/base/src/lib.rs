//! What all crates stand on: files that are whole or not there, byte streams, capabilities that are given up, and the places at
//! which tests kill a command.

pub mod atomic;
pub mod capabilities;
#[cfg(feature = "test-hooks")]
pub mod crash;
#[cfg(not(feature = "test-hooks"))]
#[path = "no_crash.rs"]
pub mod crash;
mod stream;

pub use stream::{ByteStream, Stream};
