//! The user's kubeconfig. The document is edited as a tree, so that what other tools wrote stays.

pub mod document;
mod file;
mod lock;
mod ours;
pub mod yaml;

pub use document::{Credentials, Entry};
pub use file::{edit, path, read};
pub use ours::Ours;
