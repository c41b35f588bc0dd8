//! A fake world beyond the host: a namespace that every stray packet would reach, and that counts them.

use std::process::{Child, Command, Stdio};

/// The far end of the test namespace's default route. Its address is from a range for documentation
/// (RFC 5737), so nothing real is meant by it.
pub struct Uplink {
    holder: Child,
}

const SETUP: &str = "
ip link set lo up
ip addr add 198.51.100.1/24 dev up0
ip link set up0 up
nft -f - <<EOF
table ip stray {
  chain seen {
    type filter hook prerouting priority -300; policy accept;
    NAMESERVERS
    ip daddr { 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16 } counter name private
    ip saddr { 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16 } counter name unmasked
  }
  counter private { }
  counter unmasked { }
}
EOF
";

impl Uplink {
    /// Gives this thread's network namespace a default route to nowhere.
    pub fn new() -> Uplink {
        let holder = Command::new("unshare")
            .args(["--net", "sleep", "infinity"])
            .stdin(Stdio::null())
            .spawn()
            .expect("make the namespace of the uplink");
        let uplink = Uplink { holder };
        let pid = uplink.holder.id();
        let own = std::fs::read_link("/proc/thread-self/ns/net").expect("own namespace");
        crate::eventually("the uplink's namespace", std::time::Duration::from_secs(5), || {
            let other = std::fs::read_link(format!("/proc/{pid}/ns/net")).map_err(|e| e.to_string())?;
            if other == own { Err("still ours".into()) } else { Ok(()) }
        });
        let setup = SETUP.replace("NAMESERVERS", &nameserver_rules());
        shell(&format!(
            "ip link add uplink0 type veth peer name up0 netns {pid} && ip addr add 198.51.100.2/24 dev uplink0 && \
             ip link set uplink0 up && nsenter -t {pid} -n bash -ec '{setup}' && ip route add default via 198.51.100.1"
        ));
        uplink
    }

    /// A neighbour of the host's takes it for the router to a cluster, and finds somebody there.
    pub fn reaches(&self, address: std::net::Ipv4Addr, port: u16) -> bool {
        let pid = self.holder.id();
        let script = format!(
            "ip route replace {address} via 198.51.100.2 && timeout 2 bash -c '</dev/tcp/{address}/{port}'"
        );
        let mut command = Command::new("nsenter");
        command.args(["-t", &pid.to_string(), "-n", "bash", "-c", &script]).stderr(Stdio::null());
        command.status().expect("run nsenter").success()
    }

    /// Packets that came to (or from) a private address: (private, unmasked).
    pub fn strays(&self) -> (u64, u64) {
        let pid = self.holder.id();
        let text = shell(&format!("nsenter -t {pid} -n nft -j list counters"));
        let listing: serde_json::Value = serde_json::from_str(&text).expect("nft's counters");
        let count = |name: &str| {
            let all = listing["nftables"].as_array().into_iter().flatten();
            all.filter(|o| o["counter"]["name"] == name)
                .filter_map(|o| o["counter"]["packets"].as_u64())
                .sum()
        };
        (count("private"), count("unmasked"))
    }
}

/// Pods' questions about the outside go to the host's own name servers, wherever those are.
fn nameserver_rules() -> String {
    let text = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    let servers = text.lines().filter_map(|l| l.strip_prefix("nameserver ")).filter(|s| !s.contains(':'));
    servers
        .map(|ip| format!("ip daddr {} meta l4proto {{ tcp, udp }} th dport 53 accept\n", ip.trim()))
        .collect()
}

impl Default for Uplink {
    fn default() -> Uplink {
        Uplink::new()
    }
}

impl Drop for Uplink {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

#[track_caller]
fn shell(script: &str) -> String {
    let output = Command::new("bash").args(["-ec", script]).output().expect("run bash");
    assert!(output.status.success(), "{script}\n{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
