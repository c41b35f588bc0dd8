//! Where advertisements come and go.

use std::io::{Error, IoSliceMut};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::AsRawFd;

use anyhow::{Context, Result};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrIn, recvmsg, setsockopt, sockopt};
use tokio::io::Interest;
use tokio::net::UdpSocket;

use super::advert::{Advert, SIZE};

/// See `advert`: only what was sent on this link has it.
const TTL: u32 = 255;

pub struct Socket {
    socket: UdpSocket,
    vip: Ipv4Addr,
    port: u16,
}

impl Socket {
    pub async fn open(me: Ipv4Addr, port: u16, link: &str, vip: Ipv4Addr) -> Result<Socket> {
        let socket = UdpSocket::bind((me, port)).await.with_context(|| format!("listen on {me}:{port}"))?;
        // Not for pods of this node, whose packets come in by other links.
        socket.bind_device(Some(link.as_bytes())).with_context(|| format!("listen only on {link}"))?;
        socket.set_ttl(TTL).context("set the TTL of advertisements")?;
        setsockopt(&socket, sockopt::Ipv4RecvTtl, &true).context("ask for the TTL of advertisements")?;
        Ok(Socket { socket, vip, port })
    }

    /// Best effort: the next one follows soon, and a peer that is down is no error.
    pub fn send(&self, to: Ipv4Addr, advert: &Advert) {
        let _ = self.socket.try_send_to(&advert.encode(self.vip), SocketAddrV4::new(to, self.port).into());
    }

    /// The next advertisement of a neighbour.
    pub async fn receive(&self) -> Result<(Ipv4Addr, Advert)> {
        loop {
            let received = self.socket.async_io(Interest::READABLE, || self.receive_one()).await;
            if let Some(heard) = received.context("receive advertisements")? {
                return Ok(heard);
            }
        }
    }

    /// The next advertisement, if one is here already. Asks the kernel and not the runtime, which may
    /// not know of it yet when the process stood still.
    pub fn waiting(&self) -> Option<(Ipv4Addr, Advert)> {
        loop {
            match self.receive_one() {
                Ok(Some(heard)) => return Some(heard),
                Ok(None) => {}
                Err(_) => return None,
            }
        }
    }

    /// Forgets what waits to be received.
    pub fn drain(&self) {
        while self.waiting().is_some() {}
    }

    fn receive_one(&self) -> std::io::Result<Option<(Ipv4Addr, Advert)>> {
        let mut packet = [0; SIZE + 1];
        let mut buffers = [IoSliceMut::new(&mut packet)];
        let mut control = nix::cmsg_space!(i32);
        let fd = self.socket.as_raw_fd();
        let message =
            match recvmsg::<SockaddrIn>(fd, &mut buffers, Some(&mut control), MsgFlags::MSG_DONTWAIT) {
                // "Connection refused" tells of an earlier packet to a peer that is not up.
                Err(nix::Error::ECONNREFUSED | nix::Error::EHOSTUNREACH) => return Ok(None),
                received => received.map_err(Error::from)?,
            };
        let near = message.cmsgs()?.any(|c| matches!(c, ControlMessageOwned::Ipv4Ttl(255)));
        let from = message.address.filter(|a| near && a.port() == self.port);
        let length = message.bytes;
        Ok(from.and_then(|from| Some((from.ip(), Advert::decode(&packet[..length], self.vip)?))))
    }
}
