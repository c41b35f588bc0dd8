//! Connections to the virtual address are spread over the healthy API servers by the kernel.
//!
//! Every control plane has the rules at all times, not only the holder: who takes the address over
//! is ready at once, and what runs on a control plane goes straight to a server, without the holder.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::net::Ipv4Addr;

use anyhow::{Context, Result};

use crate::commands;
use crate::reaper::Reaper;

/// What the rules are about.
#[derive(Debug, Clone, Copy)]
pub struct Service {
    pub vip: Ipv4Addr,
    pub port: u16,
    pub me: Ipv4Addr,
}

/// All rules at once, in one transaction of the kernel: no connection ever sees half of them.
pub async fn apply(reaper: &Reaper, service: Service, backends: &BTreeSet<Ipv4Addr>) -> Result<()> {
    let argv = ["nft", "-f", "-"].map(str::to_owned);
    commands::feed(reaper, &argv, rules(service, backends).as_bytes())
        .await
        .context("balance connections")?;
    Ok(())
}

/// With no server but our own there is nothing to spread: connections go to it as they are, even if
/// it is not healthy, because nobody else would answer either.
fn rules(service: Service, backends: &BTreeSet<Ipv4Addr>) -> String {
    let Service { vip, port, me } = service;
    let mut text = "table ip manykube_vip {}\ndelete table ip manykube_vip\n".to_owned();
    if backends.iter().all(|ip| *ip == me) {
        return text;
    }
    let map: Vec<String> = backends.iter().enumerate().map(|(i, ip)| format!("{i} : {ip}")).collect();
    let spread = format!(
        "ip daddr {vip} tcp dport {port} dnat to numgen inc mod {} map {{ {} }}",
        map.len(),
        map.join(", ")
    );
    let _ = write!(
        text,
        // A little before kube-proxy's chains, which know nothing of this address anyway.
        // Answers must come back this way, so what we pass on is sent under our own address. (A
        // process of the holder itself would otherwise send from the virtual address.)
        "table ip manykube_vip {{\n  \
           chain prerouting {{\n    type nat hook prerouting priority -110; policy accept;\n    {spread}\n  }}\n  \
           chain output {{\n    type nat hook output priority -110; policy accept;\n    {spread}\n  }}\n  \
           chain postrouting {{\n    type nat hook postrouting priority 90; policy accept;\n    \
             tcp dport {port} ct status dnat ct original ip daddr {vip} oifname != \"lo\" snat to {me}\n  \
           }}\n\
         }}\n"
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(last: u8) -> Ipv4Addr {
        Ipv4Addr::new(192, 168, 49, last)
    }

    #[test]
    fn rules_name_every_backend_once() {
        let service = Service { vip: ip(254), port: 8443, me: ip(2) };
        let text = rules(service, &[2, 3, 4].map(ip).into());
        let spread = "ip daddr 192.168.49.254 tcp dport 8443 dnat to numgen inc mod 3 \
                      map { 0 : 192.168.49.2, 1 : 192.168.49.3, 2 : 192.168.49.4 }\n";
        assert_eq!(text.matches(spread).count(), 2, "{text}");
        assert!(text.contains("snat to 192.168.49.2\n"), "{text}");
    }

    #[test]
    fn nothing_is_rewritten_for_ourselves() {
        let service = Service { vip: ip(254), port: 8443, me: ip(2) };
        for backends in [BTreeSet::new(), [ip(2)].into()] {
            let text = rules(service, &backends);
            assert!(text.ends_with("delete table ip manykube_vip\n"), "{text}");
        }
        assert!(rules(service, &[ip(3)].into()).contains("mod 1 map { 0 : 192.168.49.3 }"));
    }
}
