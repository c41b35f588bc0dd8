//! A small client of containerd: content, snapshots, images, leases, events.

mod client;
mod content;
mod images;
mod lease;
pub mod messages;
mod snapshots;

pub use client::{Client, Error};
pub use content::Blob;
pub use lease::Lease;
