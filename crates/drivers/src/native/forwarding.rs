//! A host that forwards for its machines is no router for others.
//!
//! Forwarding is on for all networks of the host at once: a second LAN, a VPN. Docker drops the rest
//! when it was the one to switch it on, and so do we. Containers and virtual machines are behind bridges and virtual
//! cables, also those that are started later: what comes from one or goes to one is let through.

use std::path::Path;

use anyhow::Result;

use super::guard::nft;

const TABLE: &str = "manykube-forwarding";
/// Kinds of links, as `ip -d link` names them.
const OF_MACHINES: [&str; 2] = ["bridge", "veth"];

fn rules() -> String {
    let kinds = OF_MACHINES.map(|kind| format!("\"{kind}\"")).join(", ");
    format!(
        r#"table ip {TABLE} {{}}
delete table ip {TABLE}
table ip {TABLE} {{
  chain forward {{
    type filter hook forward priority -6; policy accept;
    meta iifkind {{ {kinds} }} accept
    meta oifkind {{ {kinds} }} accept
    counter drop comment "this host was no router before"
  }}
}}
"#
    )
}

pub fn up(image_rootfs: &Path) -> Result<()> {
    nft(image_rootfs, &rules())
}

/// The empty table first makes the removal of one that is not there no error.
pub fn down(image_rootfs: &Path) -> Result<()> {
    nft(image_rootfs, &format!("table ip {TABLE} {{}}\ndelete table ip {TABLE}\n"))
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;
    use crate::native::network::tests::apart;

    fn shell(script: &str) -> bool {
        Command::new("bash").args(["-ec", script]).status().unwrap().success()
    }

    /// Beyond one link of this namespace, which is `kind` here.
    struct Neighbour(Child);

    impl Neighbour {
        fn new(number: u8, kind: &str) -> Neighbour {
            let holder = Neighbour(Command::new("unshare").args(["--net", "sleep", "60"]).spawn().unwrap());
            let (pid, net) = (holder.0.id(), format!("198.51.{number}"));
            let link = if kind == "veth" { "cable" } else { "lan" };
            let made = shell(&format!(
                "until [ $(readlink /proc/{pid}/ns/net) != $(readlink /proc/self/ns/net) ]; do sleep 0.01; done
                 ip link add cable{number} type veth peer name far netns {pid}; ip link set cable{number} up
                 [ {link} = cable ] || ip link add link cable{number} name lan{number} type {kind}
                 ip addr add {net}.1/24 dev {link}{number}; ip link set {link}{number} up
                 nsenter -t {pid} -n bash -ec 'ip addr add {net}.2/24 dev far; ip link set far up
                 ip route add default via {net}.1'"
            ));
            assert!(made, "a neighbour");
            holder
        }

        /// No program listens there: a refusal shows that the packet arrived.
        fn reaches(&self, number: u8) -> bool {
            let pid = self.0.id();
            shell(&format!(
                "nsenter -t {pid} -n timeout 1 bash -c '</dev/tcp/198.51.{number}.2/9' 2>/dev/null || [ $? = 1 ]"
            ))
        }
    }

    impl Drop for Neighbour {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn neighbours_are_not_routed_to_each_other_and_containers_are() {
        if !Path::new("/usr/sbin/nft").exists() {
            return;
        }
        apart(async || {
            std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap();
            let (lan, vpn) = (Neighbour::new(100, "macvlan"), Neighbour::new(101, "macvlan"));
            let container = Neighbour::new(102, "veth");
            assert!(lan.reaches(101), "the test shows nothing");
            up(Path::new("/")).unwrap();
            up(Path::new("/")).unwrap();
            assert!(!lan.reaches(101) && !vpn.reaches(100));
            assert!(container.reaches(100), "another engine's container has no way out");
            down(Path::new("/")).unwrap();
            down(Path::new("/")).unwrap();
            assert!(lan.reaches(101));
        });
    }
}
