//! A machine as it lies on this host, whatever driver runs it: a directory with the node's own files, its
//! /var, and a place that the host and the agent share.

pub mod disk;
pub mod files;
mod homes;
mod look;
mod make;
mod paths;

pub(crate) use disk::FILL;
pub(crate) use homes::note;
pub use homes::{User, on_image, other_user};
pub use look::{
    driver_of, has_file, init_of, look_at, of_home, read_file, root_of, shared_dir, var_dir, wait_end,
    write_file,
};
pub(crate) use make::{configure, create, discard, fresh_dir, sweep};
pub(crate) use paths::Paths;
