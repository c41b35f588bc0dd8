//! Real clusters for tests, each in a network namespace of its own that has no way out.

pub mod archive;
pub mod certificates;
pub mod crash;
mod engine;
pub mod etcd;
pub mod exit_codes;
mod far;
mod footprint;
pub mod health;
mod http;
mod lab;
mod layers;
pub mod machine;
mod neighbours;
mod podman;
pub mod power;
mod ran;
mod recorded;
mod registry;
pub mod scan;
mod sshd;
pub mod traffic;
mod uplink;
mod user;

pub use engine::Engine;
pub use footprint::Footprint;
pub use http::{http_get, http_get_path};
pub use lab::{Lab, eventually};
pub use layers::Layers;
pub use machine::Machine;
pub use podman::Podman;
pub use ran::Ran;
pub use recorded::Recorded;
pub use registry::Registry;
pub use traffic::Traffic;
pub use uplink::Uplink;
pub use user::User;

/// How often a test repeats what it does: `make test` a little, who measures as often as asked for.
pub fn rounds(variable: &str, usual: usize) -> usize {
    match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable} is no number: {text:?}")),
        Err(_) => usual,
    }
}
