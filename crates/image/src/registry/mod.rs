//! Node images in registries: an OCI image that an engine can run as it is, and that our store can take.

mod client;
mod documents;
mod download;
#[cfg(test)]
mod hostile_tests;
mod layer;
mod login;
mod pack;
pub(crate) mod parts;
mod pull;
mod push;
mod reference;

pub use documents::Label;
pub use login::{Login, name_user};
pub use pull::pull;
pub use push::push;
pub use reference::{Pinned, Reference};

/// What is done with a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    Packing,
    Sending,
    Receiving,
    Unpacking,
}

/// How far a layer is. The last one of its kind has `done == total`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerEvent {
    pub layer: String,
    pub doing: Doing,
    pub done: u64,
    pub total: u64,
}

pub type LayerProgress = dyn Fn(LayerEvent) + Send + Sync;

/// Why an image cannot be had from a registry, or given to one. Each is one sentence's end; who asked knows the
/// beginning.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    #[error("{0:?} is not the name of an image in a registry")]
    BadReference(String),
    #[error("the registry {host} cannot be reached: {why}")]
    Unreachable { host: String, why: String },
    #[error("the registry {0} has no such image")]
    Missing(String),
    #[error("the registry {host} does not allow it to {}", user.as_deref().unwrap_or("those who are not logged in"))]
    Denied { host: String, user: Option<String> },
    #[error("the registry {host} answered: {why}")]
    Registry { host: String, why: String },
    #[error("it is not a node image that `manykube node-image push` made")]
    NotOurs,
    #[error("it is for {0} machines, and this is {this}", this = crate::build::architecture())]
    Architecture(String),
    #[error("its manifest has {0:?} where a digest belongs")]
    NotADigest(String),
    #[error("{what} is {found}, not {wanted}")]
    Digest { what: String, wanted: String, found: String },
    #[error("it takes {} on the disk of {}, which has {} left", crate::human_size(*needed), dir.display(), crate::human_size(*free))]
    NoSpace { dir: std::path::PathBuf, needed: u64, free: u64 },
}
