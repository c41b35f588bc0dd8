//! The node image: what it is made of, how it is built here, and the store of unpacked images.
//!
//! An image is one directory: a root file system (the lower layer of every node's overlay root) whose
//! `/var` already holds containerd's store with all control-plane images, and a manifest that is written
//! last. `docs/node-image.md` is the tour.

mod archive;
mod arrival;
mod bounds;
mod build;
mod check;
mod clone;
pub mod hash;
mod human;
mod manifest;
mod pins;
mod programs;
pub mod registry;
mod store;
mod strict;
mod tools;
mod unpack;
mod walk;

pub use archive::Progress;
pub use arrival::from_engine;
pub use build::{BuildEvent, BuildFailed, BuildOptions, build, build_node_programs};
pub use check::{Damage, Damaged};
pub use clone::CONTAINERD;
pub use human::{Row, human_size, rows};
pub use manifest::{FileEntry, Files, Manifest};
pub use pins::{UnknownVersion, default_version, known_versions, resolve_version};
pub use programs::NodePrograms;
pub use store::{NodeImage, Store};
pub use tools::{MissingTool, missing_tools};
