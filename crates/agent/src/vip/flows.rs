//! Ending connections that nobody will answer any more, so that clients make new ones at once
//! instead of waiting for minutes.

use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, sendto, socket,
};
use tokio::time::sleep;

use super::balance::Service;
use crate::commands;
use crate::reaper::Reaper;

/// A client ignores strange segments for half a second after one (tcp_invalid_ratelimit).
const ONCE_MORE: Duration = Duration::from_millis(700);

const TRIES: u32 = 5;

/// One end of a connection: a client's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Client {
    ip: Ipv4Addr,
    port: u16,
}

/// Ends what goes through this node to the API server of `backend`.
pub async fn cut(reaper: &Reaper, service: Service, backend: Ipv4Addr) -> Result<()> {
    if backend == service.me {
        // Those that came without being rewritten end at sockets of the (hanging) server.
        destroy(reaper, &format!("src {} sport = :{}", service.vip, service.port)).await?;
    }
    let clients = forget(reaper, service, &["--reply-src", &backend.to_string()]).await?;
    reset(service, &clients).await
}

/// Ends all connections by way of the virtual address: no other node takes them on, or this one goes down.
pub async fn cut_all(reaper: &Reaper, service: Service) -> Result<()> {
    // Processes of this node have it as their own address.
    destroy(reaper, &format!("src {}", service.vip)).await?;
    let clients = forget(reaper, service, &[]).await?;
    reset(service, &clients).await
}

/// Removes the kernel's memory of connections; whose they were.
async fn forget(reaper: &Reaper, service: Service, which: &[&str]) -> Result<Vec<Client>> {
    let (vip, port) = (service.vip.to_string(), service.port.to_string());
    let mut argv = vec!["conntrack", "-D", "-p", "tcp", "--state", "ESTABLISHED"];
    argv.extend(["--orig-dst", &vip, "--dport", &port]);
    argv.extend(which);
    let argv: Vec<String> = argv.into_iter().map(str::to_owned).collect();
    let mut clients = Vec::new();
    for _ in 0..TRIES {
        let said = commands::listen(reaper, &argv, b"").await?;
        clients.extend(said.output.lines().filter_map(client));
        // It stops at one that has ended in the same moment, and what came after that is left.
        if !said.errors.contains("such conntrack doesn't exist") {
            return Ok(clients);
        }
    }
    Ok(clients)
}

async fn destroy(reaper: &Reaper, which: &str) -> Result<()> {
    let mut argv = ["ss", "-H", "-K", "-t"].map(str::to_owned).to_vec();
    argv.extend(which.split(' ').map(str::to_owned));
    commands::feed(reaper, &argv, b"").await.context("close sockets").map(drop)
}

/// A client that only waits would never learn that its connection is gone. A segment that cannot
/// belong to it makes its kernel answer with what it believes (a "challenge ACK"); whoever gets
/// that does not know the connection and says so in a way that the client's kernel accepts.
async fn reset(service: Service, clients: &[Client]) -> Result<()> {
    if clients.is_empty() {
        return Ok(());
    }
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    // With this protocol the kernel takes the IP header from us, with a source that may have moved.
    let socket =
        socket(AddressFamily::Inet, SockType::Raw, flags, SockProtocol::Raw).context("open a raw socket")?;
    for round in 0..2 {
        if round > 0 {
            sleep(ONCE_MORE).await;
        }
        for client in clients {
            let packet = segment(service.vip, service.port, *client);
            let [a, b, c, d] = client.ip.octets();
            // Best effort: a client that cannot be reached needs no telling.
            let _ =
                sendto(socket.as_raw_fd(), &packet, &SockaddrIn::new(a, b, c, d, 0), MsgFlags::MSG_DONTWAIT);
        }
    }
    Ok(())
}

/// An ACK of the number zero from the virtual address. The kernel fills in the IP checksum.
fn segment(vip: Ipv4Addr, port: u16, client: Client) -> [u8; 40] {
    let mut p = [0; 40];
    // Version 4, header of five words, 40 bytes, TTL 64, TCP.
    (p[0], p[3], p[8], p[9]) = (0x45, 40, 64, 6);
    p[12..16].copy_from_slice(&vip.octets());
    p[16..20].copy_from_slice(&client.ip.octets());
    p[20..22].copy_from_slice(&port.to_be_bytes());
    p[22..24].copy_from_slice(&client.port.to_be_bytes());
    // Header of five words, flag ACK.
    (p[32], p[33]) = (0x50, 0x10);
    let sum = checksum(&p);
    p[36..38].copy_from_slice(&sum.to_be_bytes());
    p
}

/// Of TCP: over the addresses, the protocol, the length and the segment (RFC 9293, 3.1).
fn checksum(packet: &[u8; 40]) -> u16 {
    let words = packet[12..].chunks_exact(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])));
    let mut sum = words.sum::<u32>() + 6 + 20;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).unwrap_or(0)
}

/// The client in one line of conntrack: the first source is the original one.
fn client(line: &str) -> Option<Client> {
    let field = |name: &str| line.split_ascii_whitespace().find_map(|w| w.strip_prefix(name));
    Some(Client { ip: field("src=")?.parse().ok()?, port: field("sport=")?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_read_from_conntrack() {
        let line = "tcp      6 431998 ESTABLISHED src=192.168.49.1 dst=192.168.49.254 sport=43210 dport=8443 \
                    src=192.168.49.3 dst=192.168.49.2 sport=8443 dport=43210 [ASSURED] mark=0 use=1";
        assert_eq!(client(line), Some(Client { ip: Ipv4Addr::new(192, 168, 49, 1), port: 43210 }));
        assert_eq!(client("conntrack v1.4.8 (conntrack-tools): 1 flow entries have been deleted."), None);
    }

    #[test]
    fn a_segment_sums_up() {
        let client = Client { ip: Ipv4Addr::new(192, 168, 49, 1), port: 43210 };
        let packet = segment(Ipv4Addr::new(192, 168, 49, 254), 8443, client);
        assert_eq!(checksum(&packet), 0, "with its checksum a segment sums up to nothing");
    }
}
