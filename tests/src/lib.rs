//! Real clusters for tests, each in a network namespace of its own that has no way out.

mod footprint;
mod lab;
mod ran;
mod uplink;

pub use footprint::Footprint;
pub use lab::{Lab, eventually};
pub use ran::Ran;
pub use uplink::Uplink;
