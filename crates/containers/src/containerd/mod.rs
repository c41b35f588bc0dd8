//! A small client of containerd: content, snapshots, images, leases, events.

mod client;
mod content;
mod images;
mod lease;
pub mod messages;
mod snapshots;
mod source;

pub use client::{Client, Error};
pub use lease::Lease;
pub use source::{Blob, Source};
