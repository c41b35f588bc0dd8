//! Machines that a node lives in. One trait, one folder per driver.

pub mod driver;
pub mod faults;
pub mod native;

pub use driver::{Bind, Driver, Io, Machine, MachineSpec, MachineState, Notice, Output};
pub use faults::{Faults, Loss};
