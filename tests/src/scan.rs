//! A look at every TCP port of some addresses, as an attacker in a network would take it.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use netlink::{Netlink, Veth};
use nix::sched::{CloneFlags, unshare};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// So many questions are open at once.
const AT_ONCE: usize = 1000;
/// All are neighbours: who does not answer within this does not listen.
const PATIENCE: Duration = Duration::from_secs(2);

/// The ports that take connections, from this thread's network namespace.
pub fn open_ports(address: Ipv4Addr) -> BTreeSet<u16> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
    runtime.block_on(async {
        let mut found = BTreeSet::new();
        let mut asked = JoinSet::new();
        for port in 1..=u16::MAX {
            if asked.len() >= AT_ONCE {
                found.extend(asked.join_next().await.and_then(Result::ok).flatten());
            }
            asked.spawn(ask(SocketAddrV4::new(address, port)));
        }
        while let Some(answer) = asked.join_next().await {
            found.extend(answer.ok().flatten());
        }
        found
    })
}

async fn ask(address: SocketAddrV4) -> Option<u16> {
    let connected = timeout(PATIENCE, TcpStream::connect(address)).await;
    let stream = connected.ok()?.ok()?;
    // A connection to oneself is no listener: the kernel gave us the very port that was asked for.
    (stream.local_addr().ok()? != address.into()).then_some(address.port())
}

/// Runs `look` in a new network namespace that hangs on `bridge` like any machine, with an address of its own.
pub fn from_bridge<T: Send>(bridge: &str, own: Ipv4Addr, look: impl FnOnce() -> T + Send) -> T {
    let (ready, waiting) = std::sync::mpsc::channel();
    let (plugged, go) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let looker = scope.spawn(move || {
            unshare(CloneFlags::CLONE_NEWNET).expect("make a network namespace");
            ready.send(nix::unistd::gettid().as_raw()).expect("the test waits");
            go.recv().expect("the cable");
            block_on(async {
                let net = Netlink::open().expect("netlink");
                let link = net.link("scan1").await.expect("links").expect("our end of the cable");
                net.up(link.index).await.expect("switch it on");
                let address = format!("{own}/24").parse().expect("an address");
                net.add_address(link.index, address).await.expect("an address");
            });
            look()
        });
        let thread = u32::try_from(waiting.recv().expect("a namespace")).expect("a thread");
        block_on(async {
            let net = Netlink::open().expect("netlink");
            let bridge = net.link(bridge).await.expect("links").expect("the profile's bridge").index;
            let peer_mac = [2, 0, 0, 0, 0, 1];
            let veth = Veth {
                host_name: "scan0",
                bridge,
                peer_name: "scan1",
                peer_mac,
                peer_pid: thread,
                mtu: 1500,
            };
            net.veth(&veth).await.expect("a cable");
        });
        plugged.send(()).expect("the looker waits");
        let seen = looker.join().expect("the look");
        block_on(async {
            Netlink::open().expect("netlink").remove_link("scan0").await.expect("take it away")
        });
        seen
    })
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
    runtime.block_on(work)
}
