//! What a cluster *is*: names, addresses, sizes, files and words. Pure: no IO, no clock, no unsafe code.
#![forbid(unsafe_code)]

pub mod address;
pub mod cluster;
pub mod cni;
pub mod config_file;
pub mod home;
pub mod injected;
pub mod minikube;
pub mod names;
pub mod node_config;
pub mod node_spec;
pub mod reason;
pub mod resources;
pub mod skew;
pub mod status;
pub mod vip;

pub use cluster::{Cluster, DriverKind, Node};
pub use cni::Cni;
pub use home::Home;
pub use node_config::NodeConfig;
pub use reason::{Fault, Reason};
pub use vip::VipBy;
