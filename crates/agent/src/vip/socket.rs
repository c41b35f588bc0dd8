//! Where advertisements come and go.

use std::cell::RefCell;
use std::io::{Error, IoSliceMut};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::AsRawFd;

use anyhow::{Context, Result};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrIn, recvmsg, setsockopt, sockopt};
use tokio::io::Interest;
use tokio::net::UdpSocket;

use super::advert::{Advert, SIZE, Seal};
use super::election::Event;
use super::replay::{self, Replay};

/// See `advert`: only what was sent on this link has it.
const TTL: u32 = 255;

pub struct Socket {
    socket: UdpSocket,
    me: Ipv4Addr,
    port: u16,
    seal: Seal,
    replay: RefCell<Replay>,
}

impl Socket {
    pub async fn open(me: Ipv4Addr, port: u16, link: &str, seal: Seal) -> Result<Socket> {
        let socket = UdpSocket::bind((me, port)).await.with_context(|| format!("listen on {me}:{port}"))?;
        // Not for pods of this node, whose packets come in by other links.
        socket.bind_device(Some(link.as_bytes())).with_context(|| format!("listen only on {link}"))?;
        socket.set_ttl(TTL).context("set the TTL of advertisements")?;
        setsockopt(&socket, sockopt::Ipv4RecvTtl, &true).context("ask for the TTL of advertisements")?;
        Ok(Socket { socket, me, port, seal, replay: RefCell::default() })
    }

    /// Best effort: the next one follows soon, and a peer that is down is no error.
    pub fn send(&self, to: impl Iterator<Item = Ipv4Addr>, advert: &Advert) {
        let stamp = self.replay.borrow_mut().stamp(replay::now());
        let packet = advert.encode(&self.seal, self.me, stamp);
        for peer in to {
            let _ = self.socket.try_send_to(&packet, SocketAddrV4::new(peer, self.port).into());
        }
    }

    /// The next word of a neighbour.
    pub async fn receive(&self) -> Result<Event> {
        loop {
            let received = self.socket.async_io(Interest::READABLE, || self.receive_one()).await;
            if let Some(heard) = received.context("receive advertisements")? {
                return Ok(heard);
            }
        }
    }

    /// The next one, if it is here already. Asks the kernel and not the runtime, which may not know
    /// of it yet when the process stood still.
    pub fn waiting(&self) -> Option<Event> {
        loop {
            match self.receive_one() {
                Ok(Some(heard)) => return Some(heard),
                Ok(None) => {}
                Err(_) => return None,
            }
        }
    }

    fn receive_one(&self) -> std::io::Result<Option<Event>> {
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
        let from = message.address.filter(|a| near && a.port() == self.port).map(|a| a.ip());
        let length = message.bytes;
        Ok(from.and_then(|from| self.understand(&packet[..length], from)))
    }

    fn understand(&self, packet: &[u8], from: Ipv4Addr) -> Option<Event> {
        let Some((advert, stamp)) = Advert::decode(packet, &self.seal, from) else {
            return Some(Event::Noise(from));
        };
        let new = self.replay.borrow_mut().is_new(from, stamp, replay::now());
        new.then_some(Event::Heard(from, advert))
    }
}
