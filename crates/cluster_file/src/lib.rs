//! The cluster file: every node and its configuration in one text.
//!
//! `parse` reads it (ours, or kind's) and checks it, with a place for everything that is wrong;
//! `resolve` makes the desired cluster of it; `diff` says what that changes; `export` writes the file
//! of a cluster. Pure: no IO, no clock.
#![forbid(unsafe_code)]

mod anchor;
mod check;
mod diff;
mod expand;
mod export;
mod file;
mod kind;
mod parse;
mod problem;
mod resolve;
mod schema;
mod source;
mod suggest;
mod yaml;

pub use diff::{Diff, Fixed, NodeChange, diff};
pub use export::{export, write};
pub use file::{
    ApiServer, ClusterFile, FileToPlace, KubeconfigSettings, Networking, NodeGroup, PatchSet, Role,
};
pub use parse::{Origin, Parsed, parse};
pub use problem::{Problem, Problems};
pub use resolve::resolve;
pub use schema::schema;
pub use source::{Position, Span};
pub use yaml::{MAX_BYTES, Path, Step};

#[cfg(test)]
pub(crate) mod samples;
