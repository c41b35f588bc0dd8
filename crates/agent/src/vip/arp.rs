//! ARP on the node's link: telling the network where an address is.

use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, OwnedFd};

use anyhow::{Context, Result};
use nix::libc;
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, send, socket};

const SIZE: usize = 42;
const BROADCAST: [u8; 6] = [0xff; 6];

/// A packet socket on one link, to send ARP on.
pub struct Arp {
    socket: OwnedFd,
    mac: [u8; 6],
}

impl Arp {
    pub fn open(link: u32, mac: [u8; 6]) -> Result<Arp> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        // Protocol 0: nothing is ever delivered to it.
        let socket =
            socket(AddressFamily::Packet, SockType::Raw, flags, None).context("open an ARP socket")?;
        bind(&socket, link).with_context(|| format!("bind the ARP socket to link {link}"))?;
        Ok(Arp { socket, mac })
    }

    /// `ip` is here: a gratuitous ARP in the form of RFC 5227, which updates whoever knows `ip`.
    pub fn announce(&self, ip: Ipv4Addr) -> Result<()> {
        self.send(&request(self.mac, ip, ip)).with_context(|| format!("announce {ip}"))
    }

    /// The kernel learns from the answer, even if it believes to know `who` already.
    pub fn ask(&self, me: Ipv4Addr, who: Ipv4Addr) -> Result<()> {
        self.send(&request(self.mac, me, who)).with_context(|| format!("ask for {who}"))
    }

    fn send(&self, frame: &[u8]) -> nix::Result<()> {
        send(self.socket.as_raw_fd(), frame, MsgFlags::MSG_DONTWAIT).map(drop)
    }
}

fn bind(socket: &OwnedFd, link: u32) -> Result<()> {
    // SAFETY: all fields of sockaddr_ll are integers, for which zero is a value.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = u16::try_from(libc::AF_PACKET)?;
    address.sll_ifindex = i32::try_from(link)?;
    let length = libc::socklen_t::try_from(size_of::<libc::sockaddr_ll>())?;
    // SAFETY: `address` is a sockaddr_ll of `length` bytes that outlives the call, and the
    // descriptor is open because it is borrowed.
    let bound = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) };
    nix::errno::Errno::result(bound)?;
    Ok(())
}

/// "Who has `target`? Tell `sender`", to everybody.
fn request(mac: [u8; 6], sender: Ipv4Addr, target: Ipv4Addr) -> [u8; SIZE] {
    let mut frame = [0; SIZE];
    frame[..6].copy_from_slice(&BROADCAST);
    frame[6..12].copy_from_slice(&mac);
    // Ethernet type ARP; then Ethernet and IPv4 addresses of 6 and 4 bytes, operation 1 (request).
    frame[12..22].copy_from_slice(&[0x08, 0x06, 0, 1, 0x08, 0, 6, 4, 0, 1]);
    frame[22..28].copy_from_slice(&mac);
    frame[28..32].copy_from_slice(&sender.octets());
    frame[38..].copy_from_slice(&target.octets());
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_42_bytes_as_on_the_wire() {
        let (me, vip) = (Ipv4Addr::new(192, 168, 49, 2), Ipv4Addr::new(192, 168, 49, 254));
        let expected: [u8; SIZE] = [
            255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 9, 8, 6, // Ethernet
            0, 1, 8, 0, 6, 4, 0, 1, // ARP request
            2, 0, 0, 0, 0, 9, 192, 168, 49, 2, // sender
            0, 0, 0, 0, 0, 0, 192, 168, 49, 254, // target
        ];
        assert_eq!(request([2, 0, 0, 0, 0, 9], me, vip), expected);
    }
}
