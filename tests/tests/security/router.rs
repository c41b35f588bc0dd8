//! Root in a node, or a pod in its network, says that it is an IPv6 router. Nothing but a link that wants to
//! believe it does.

use std::net::{Ipv6Addr, SocketAddrV6};
use std::os::fd::AsRawFd;
use std::process::Command;
use std::time::Duration;

use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn6, sendto, setsockopt, socket,
    sockopt,
};
use system_tests::{Lab, Machine, eventually};

const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
/// What it gives addresses of.
const PREFIX: &str = "2001:db8:bad:";

pub fn is_not_believed(lab: &Lab, bridge: &str) {
    // The host's end of a cable into the bridge, which believes: so the message is known to arrive.
    ip(&["link", "add", "believer", "type", "veth", "peer", "name", "believer-port"]);
    std::fs::write("/proc/sys/net/ipv6/conf/believer/accept_ra", "2").expect("a setting of this namespace");
    ip(&["link", "set", "believer-port", "master", bridge, "up"]);
    ip(&["link", "set", "believer", "up"]);
    let node = Machine::find(lab, "minikube").expect("the machine runs");
    eventually("a router's message that arrives", Duration::from_secs(30), || {
        node.in_network(advertise)?;
        let believed = ip(&["-6", "address", "show", "dev", "believer"]);
        if believed.contains(PREFIX) { Ok(()) } else { Err(believed) }
    });
    for (what, shown) in [("routes", "route"), ("addresses", "address")] {
        let host = ip(&["-6", shown, "show", "dev", bridge]);
        let other = lab.manykube(&["ssh", "-n", "m02", "--", &format!("ip -6 {shown} show")]).ok().stdout;
        for text in [host, other] {
            assert!(
                !text.contains(PREFIX) && !text.contains("proto ra"),
                "{what} of a node's making: {text}"
            );
        }
    }
    ip(&["link", "delete", "believer"]);
}

fn ip(words: &[&str]) -> String {
    super::run(Command::new("ip").args(words))
}

/// A router advertisement (RFC 4861, 4.2) with a prefix for addresses (4.6.2).
fn advertise() -> Result<(), String> {
    let mut message = vec![134, 0, 0, 0, 64, 0];
    message.extend(1800_u16.to_be_bytes());
    message.extend([0; 8]);
    message.extend([3, 4, 64, 0xc0]);
    message.extend(86400_u32.to_be_bytes());
    message.extend(14400_u32.to_be_bytes());
    message.extend([0; 4]);
    message.extend(Ipv6Addr::new(0x2001, 0xdb8, 0xbad, 0, 0, 0, 0, 0).octets());
    send(&message).map_err(|e| format!("send a router advertisement: {e}"))
}

fn send(message: &[u8]) -> nix::Result<()> {
    let raw = socket(AddressFamily::Inet6, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::IcmpV6)?;
    setsockopt(&raw, sockopt::Ipv6MulticastHops, &255)?;
    let link = nix::net::if_::if_nametoindex("eth0")?;
    let to = SockaddrIn6::from(SocketAddrV6::new(ALL_NODES, 0, 0, link));
    sendto(raw.as_raw_fd(), message, &to, MsgFlags::empty()).map(drop)
}
