//! Is there a network at all? The gateway (the host) is there even when all other nodes are not.
//!
//! It is asked by an echo request. ARP would not do: a host answers ARP on any of its links, also on
//! the end of our cable when that was pulled out of the bridge, but the way back of an echo goes by
//! the bridge.

use std::net::{Ipv4Addr, UdpSocket as StdSocket};
use std::os::fd::AsRawFd;

use anyhow::{Context, Result};
use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, SockaddrIn, connect, socket};
use tokio::net::UdpSocket;

/// Type 8 (echo request); the kernel fills in the identifier and the checksum.
const ECHO: [u8; 8] = [8, 0, 0, 0, 0, 0, 0, 1];

pub struct Gateway {
    /// An ICMP socket, which behaves like one of UDP.
    socket: UdpSocket,
}

impl Gateway {
    pub fn open(ip: Ipv4Addr) -> Result<Gateway> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket = socket(AddressFamily::Inet, SockType::Datagram, flags, SockProtocol::Icmp)
            .context("open an ICMP socket")?;
        let [a, b, c, d] = ip.octets();
        connect(socket.as_raw_fd(), &SockaddrIn::new(a, b, c, d, 0)).context("connect to the gateway")?;
        Ok(Gateway { socket: UdpSocket::from_std(StdSocket::from(socket)).context("watch an ICMP socket")? })
    }

    pub fn ask(&self) {
        // That it cannot be sent says the same as no answer.
        let _ = self.socket.try_send(&ECHO);
    }

    pub async fn answer(&self) {
        // An error tells that an earlier request did not get there.
        while self.socket.recv(&mut [0; 64]).await.is_err() {}
    }
}
