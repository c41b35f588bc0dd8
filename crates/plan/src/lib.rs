//! What to do: a pure function of what is wanted and what is there. No IO, no clock, no chance.

#![forbid(unsafe_code)]

mod observed;
mod start;
mod step;
mod stop;

#[cfg(test)]
mod world;

pub use observed::{Api, Image, MachineState, Observed, ObservedNode};
pub use start::start;
pub use step::{Phase, Plan, Step, phase};
pub use stop::{delete, stop};
