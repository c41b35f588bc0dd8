//! A machine as it lies on this host, whatever driver runs it: a directory with the node's own files, its
//! /var, and a place that the host and the agent share.

pub mod disk;
pub mod files;
mod homes;
mod look;
mod make;
mod paths;

pub(crate) use homes::note;
pub use homes::{User, on_image, other_user};
pub use look::{driver_of, init_of, log, of_home, var_dir, wait_end};
pub(crate) use make::{configure, create, discard, fresh_dir, sweep};
pub(crate) use paths::Paths;
