//! Container images of the nodes: reading archives, and filling containerd's stores.
//!
//! An image is sent to each node blob by blob, from an archive or from a node that has it; the node's own containerd
//! checks and unpacks it. What is not finished is held by a lease only, and goes with it. Nothing here opens a node's
//! files.

pub mod archive;
pub mod containerd;
mod copy;
#[cfg(test)]
mod hostile_tests;
mod inventory;
mod node;
pub mod oci;
mod parcel;
mod put;
pub mod reference;
mod snapshot;

pub use copy::{Lacks, copy, copy_one, unpack};
pub use inventory::{Listed, list, size};
pub use node::Node;
pub use put::put;
pub use reference::{BadReference, familiar, normalise};
