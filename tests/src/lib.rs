//! Real clusters for tests, each in a network namespace of its own that has no way out.

mod footprint;
mod http;
mod lab;
mod ran;
mod uplink;

pub use footprint::Footprint;
pub use http::http_get;
pub use lab::{Lab, eventually};
pub use ran::Ran;
pub use uplink::Uplink;
