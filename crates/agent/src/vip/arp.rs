//! ARP on the node's link: telling the network where an address is.

use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use anyhow::{Context, Result};
use nix::libc;
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, recv, send, socket};

const SIZE: usize = 42;
const BROADCAST: [u8; 6] = [0xff; 6];
/// Ethernet type ARP; then Ethernet and IPv4 addresses of 6 and 4 bytes.
const HEAD: [u8; 8] = [0x08, 0x06, 0, 1, 0x08, 0, 6, 4];
const REQUEST: u8 = 1;
const REPLY: u8 = 2;

/// A packet socket on one link, for ARP.
pub struct Arp {
    socket: OwnedFd,
    mac: [u8; 6],
}

/// Who asks for an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Question {
    mac: [u8; 6],
    ip: Ipv4Addr,
    target: Ipv4Addr,
}

impl Arp {
    /// To send only.
    pub fn open(link: u32, mac: [u8; 6]) -> Result<Arp> {
        // Protocol 0: nothing is ever delivered to it.
        Arp::bound(link, mac, 0)
    }

    /// To answer as well.
    pub fn listen(link: u32, mac: [u8; 6]) -> Result<Arp> {
        Arp::bound(link, mac, u16::try_from(libc::ETH_P_ARP)?)
    }

    fn bound(link: u32, mac: [u8; 6], protocol: u16) -> Result<Arp> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket =
            socket(AddressFamily::Packet, SockType::Raw, flags, None).context("open an ARP socket")?;
        bind(&socket, link, protocol).with_context(|| format!("bind the ARP socket to link {link}"))?;
        Ok(Arp { socket, mac })
    }

    /// `ip` is here: a gratuitous ARP in the form of RFC 5227, which updates all that know `ip`.
    pub fn announce(&self, ip: Ipv4Addr) -> Result<()> {
        let frame = frame(REQUEST, BROADCAST, self.mac, ip, [0; 6], ip);
        self.send(&frame).with_context(|| format!("announce {ip}"))
    }

    /// Reads all questions that wait, and answers those for `ip`, unless it is not here.
    pub fn answer(&self, ip: Option<Ipv4Addr>) {
        let mut buffer = [0; 128];
        loop {
            match recv(self.socket.as_raw_fd(), &mut buffer, MsgFlags::MSG_DONTWAIT) {
                Ok(length) => {
                    if let Some(asked) = question(&buffer[..length]).filter(|q| Some(q.target) == ip) {
                        let reply = frame(REPLY, asked.mac, self.mac, asked.target, asked.mac, asked.ip);
                        // Who gets no answer asks again.
                        let _ = self.send(&reply);
                    }
                }
                Err(nix::Error::EINTR | nix::Error::ENETDOWN) => {}
                Err(_) => return,
            }
        }
    }

    fn send(&self, frame: &[u8]) -> nix::Result<()> {
        send(self.socket.as_raw_fd(), frame, MsgFlags::MSG_DONTWAIT).map(drop)
    }
}

impl AsRawFd for Arp {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

fn bind(socket: &OwnedFd, link: u32, protocol: u16) -> Result<()> {
    // SAFETY: all fields of sockaddr_ll are integers, for which zero is a value.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = u16::try_from(libc::AF_PACKET)?;
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = i32::try_from(link)?;
    let length = libc::socklen_t::try_from(size_of::<libc::sockaddr_ll>())?;
    // SAFETY: `address` is a sockaddr_ll of `length` bytes that outlives the call, and the
    // descriptor is open because it is borrowed.
    let bound = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) };
    nix::errno::Errno::result(bound)?;
    Ok(())
}

/// "I, `sender_mac`, am `sender`", to `to`; of a request also "who has `target`?".
fn frame(
    operation: u8,
    to: [u8; 6],
    sender_mac: [u8; 6],
    sender: Ipv4Addr,
    target_mac: [u8; 6],
    target: Ipv4Addr,
) -> [u8; SIZE] {
    let mut frame = [0; SIZE];
    frame[..6].copy_from_slice(&to);
    frame[6..12].copy_from_slice(&sender_mac);
    frame[12..20].copy_from_slice(&HEAD);
    frame[21] = operation;
    frame[22..28].copy_from_slice(&sender_mac);
    frame[28..32].copy_from_slice(&sender.octets());
    frame[32..38].copy_from_slice(&target_mac);
    frame[38..].copy_from_slice(&target.octets());
    frame
}

/// Frames may be longer than what is in them.
fn question(frame: &[u8]) -> Option<Question> {
    let frame = frame.get(..SIZE)?;
    let ip = |at: usize| Some(Ipv4Addr::from(<[u8; 4]>::try_from(&frame[at..at + 4]).ok()?));
    let asked = Question { mac: frame[22..28].try_into().ok()?, ip: ip(28)?, target: ip(38)? };
    // One that names its own address tells, it does not ask.
    (frame[12..20] == HEAD && frame[20..22] == [0, REQUEST] && asked.ip != asked.target).then_some(asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: Ipv4Addr = Ipv4Addr::new(192, 168, 49, 2);
    const VIP: Ipv4Addr = Ipv4Addr::new(192, 168, 49, 254);
    const MAC: [u8; 6] = [2, 0, 0, 0, 0, 9];
    const HOST: [u8; 6] = [2, 0, 0, 0, 0, 1];

    #[test]
    fn an_announcement_is_42_bytes_as_on_the_wire() {
        let expected: [u8; SIZE] = [
            255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 9, 8, 6, // Ethernet
            0, 1, 8, 0, 6, 4, 0, 1, // ARP request
            2, 0, 0, 0, 0, 9, 192, 168, 49, 254, // sender
            0, 0, 0, 0, 0, 0, 192, 168, 49, 254, // target
        ];
        assert_eq!(frame(REQUEST, BROADCAST, MAC, VIP, [0; 6], VIP), expected);
    }

    #[test]
    fn questions_are_told_from_the_rest() {
        let asked = frame(REQUEST, BROADCAST, HOST, ME, [0; 6], VIP);
        assert_eq!(question(&asked), Some(Question { mac: HOST, ip: ME, target: VIP }));
        let padded = [&asked[..], &[0; 18]].concat();
        assert!(question(&padded).is_some(), "as short frames are on the wire");
        assert_eq!(question(&asked[..41]), None);
        assert_eq!(question(&frame(REPLY, HOST, MAC, VIP, HOST, ME)), None);
        assert_eq!(question(&frame(REQUEST, BROADCAST, HOST, VIP, [0; 6], VIP)), None, "an announcement");
    }
}
