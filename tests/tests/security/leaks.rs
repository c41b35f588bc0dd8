//! What is inside a cluster stays inside, seen from the other end of the host's default route.

use std::net::TcpStream;
use std::time::Duration;

use system_tests::{Lab, Uplink};

/// Of a cluster that has just been started: it is stopped and started once more.
pub fn no_private_packet_leaves_the_host(lab: &Lab, uplink: &Uplink) {
    assert_eq!(uplink.strays(), (0, 0), "starting a cluster sent packets out");

    // From a node: pods and services that do not exist, and a node that does not.
    let targets = ["10.244.200.1", "10.97.1.1", "192.168.49.77"];
    let asks = targets.map(|t| format!("busybox timeout 2 busybox nc -w 1 {t} 80 & "));
    lab.manykube(&["ssh", "--", &format!("{} wait", asks.concat())]);
    // From the host: a node address nobody has, while the cluster runs and when it is stopped.
    reach(&["192.168.49.77:80"]);
    lab.manykube(&["stop"]).ok();
    reach(&["192.168.49.2:8443", "192.168.49.254:8443"]);
    assert_eq!(uplink.strays(), (0, 0), "packets for the cluster's ranges left the host");

    // The way out works, and goes by the host's own address.
    lab.manykube(&["start"]).ok();
    let ping = ["ssh", "--", "busybox", "nc", "-w", "1", "-z", "198.51.100.1", "9"];
    lab.manykube(&ping);
    let (_, unmasked) = uplink.strays();
    assert_eq!(unmasked, 0, "a node's own address was seen outside");
}

/// Nobody answers; only where the packets go matters.
fn reach(addresses: &[&str]) {
    std::thread::scope(|scope| {
        for address in addresses {
            scope.spawn(move || {
                let target = address.parse().expect("an address");
                let answer = TcpStream::connect_timeout(&target, Duration::from_secs(1));
                assert!(answer.is_err(), "{address} answered");
            });
        }
    });
}
