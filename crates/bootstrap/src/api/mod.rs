//! The cluster's API as this tool uses it: conditions to wait for, things to look at, few to do.
//! Every call has a deadline, and dropping its future stops it.

mod act;
mod apply;
mod client;
mod condition;
mod dial;
mod error;
mod foreign;
mod insist;
mod leave;
mod mark;
mod nodes;
mod observe;
mod pods;
mod remove;
mod wait;

pub use act::{NodeLabels, Wishes, adopt_node, delete_stale_leases};
pub use apply::apply;
pub use client::client;
pub use condition::{Unmet, until};
pub use dial::{Dial, direct};
pub use error::ApiError;
pub(crate) use error::why;
pub use foreign::apply_foreign;
pub use kube::Client;
pub use leave::{delete_node, drain};
pub use mark::{is_marked, mark};
pub use nodes::Nodes;
pub use observe::{AddonsSeen, Health, NodeSeen, addons_present, health, observe_nodes};
pub use remove::remove;
pub use wait::{
    daemon_set_ready, default_service_account, dns_available, node_ready, node_registered, node_sized, ready,
    serving, system_pods_now, system_pods_ready,
};
