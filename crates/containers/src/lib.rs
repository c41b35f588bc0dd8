//! Container images of the nodes: reading archives, and filling containerd's stores.
//!
//! An image is read once and given to one containerd, which checks and unpacks it. The others of the same
//! host get it from there by hard links (`spread`), through their own containerd: it is told of every blob
//! and every unpacked layer, so that it owns them as if it had made them. What is not finished is held by
//! a lease only, and goes with it.

pub mod archive;
pub mod containerd;
mod copy;
mod inventory;
mod node;
pub mod oci;
mod put;
pub mod reference;
mod snapshot;

pub use copy::{copy, is_managed, unpack};
pub use inventory::{Listed, list, size};
pub use node::Node;
pub use put::put;
pub use reference::{BadReference, familiar, normalise};
