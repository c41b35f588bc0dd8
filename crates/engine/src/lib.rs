//! Runs phases in order and the steps of a phase in parallel. Knows nothing of Kubernetes.

#![forbid(unsafe_code)]

pub mod crash;
mod event;
mod run;

pub use event::Event;
pub use run::{Failure, Phase, Step, run};
