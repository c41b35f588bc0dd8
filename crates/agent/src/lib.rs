//! What runs inside a node: its init and supervisor.
//!
//! `manykube agent init` is PID 1. It has one thread, so that a child is registered before it can
//! be reaped (see `reaper`), and every part is a task of that thread.

mod boot_id;
mod capacity;
pub mod client;
mod cni;
mod commands;
#[doc(hidden)]
pub mod component;
mod docker;
mod document;
mod etcd_log;
mod files;
mod hold;
mod init;
mod load_balancer;
mod log;
mod network;
mod packets;
mod peers;
mod poweroff;
mod prepare;
mod reaper;
mod resize;
mod routes;
mod serve;
mod service;
mod socket;
mod ssh;
mod state;
mod store;
mod sysctl;
mod vip;

use std::ffi::OsString;
use std::process::ExitCode;

/// The hidden `agent` command.
pub fn main(args: &[OsString]) -> ExitCode {
    match args.first().and_then(|a| a.to_str()) {
        Some("init") if std::process::id() == 1 => init::run(),
        Some("init") => {
            eprintln!("manykube agent init runs only as the first process of a node");
            ExitCode::FAILURE
        }
        Some("serve") => serve::run(),
        Some("packet-faults") => packets::run(),
        Some("state") => client::print(),
        Some("etcd-progress") => etcd_log::run(args.get(1..).unwrap_or_default()),
        _ => {
            eprintln!("usage: manykube agent init|serve|packet-faults|state|etcd-progress");
            ExitCode::FAILURE
        }
    }
}
