//! What to do: a pure function of what is wanted and what is there. No IO, no clock, no chance.

#![forbid(unsafe_code)]

mod leave;
mod observed;
mod recover;
mod start;
mod step;
mod stop;

#[cfg(test)]
mod world;

pub use leave::{Leave, Member, Refusal, leave};
pub use observed::{Api, Image, MachineState, Membership, Observed, ObservedNode, Setup};
pub use recover::recover;
pub use start::{add, create, start};
pub use step::{Phase, Plan, Step, phase};
pub use stop::{delete, stop};
