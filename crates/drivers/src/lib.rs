//! Machines that a node lives in. One trait, one folder per driver.

mod agent;
pub mod descriptors;
pub mod docker;
pub mod driver;
pub mod freeze;
mod lock;
pub mod machine;
pub mod native;
mod process;
pub mod terminal;
pub mod user_namespace;

pub use driver::{Bind, Driver, Machine, MachineSpec, MachineState, NoStream, Notice};
pub use freeze::Freeze;
pub use native::{MTU, cgroup_v1};
pub use process::{Handle, Identity, boot_id, identify};
