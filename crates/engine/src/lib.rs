//! Runs phases in order and the steps of a phase in parallel. Knows nothing of Kubernetes.

#![forbid(unsafe_code)]

mod event;
mod run;

pub use base::crash;
pub use event::Event;
pub use run::{Failure, Phase, Step, run};
