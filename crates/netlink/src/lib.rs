//! Links, addresses and routes of the network namespace this process is in: the few calls that the
//! driver (on the host) and the agent (in a node) both need, on top of rtnetlink.

mod filter;
mod link;
mod route;

use anyhow::{Context, Result};
use tokio::task::JoinHandle;

pub use filter::Direction;
pub use link::{Link, Veth, refuse_ipv6};
pub use route::{Owner, Via};

/// An open netlink socket. Its reader task ends with it.
pub struct Netlink {
    handle: rtnetlink::Handle,
    reader: JoinHandle<()>,
}

impl Netlink {
    pub fn open() -> Result<Netlink> {
        let (connection, handle, _) = rtnetlink::new_connection().context("open a netlink socket")?;
        Ok(Netlink { handle, reader: tokio::spawn(connection) })
    }
}

impl Drop for Netlink {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

/// The kernel's error number, when the kernel refused the request.
fn errno(error: &rtnetlink::Error) -> Option<i32> {
    match error {
        rtnetlink::Error::NetlinkError(message) => Some(message.raw_code().abs()),
        _ => None,
    }
}

const EADDRNOTAVAIL: i32 = 99;
const EEXIST: i32 = 17;
const ENODEV: i32 = 19;
const ESRCH: i32 = 3;
