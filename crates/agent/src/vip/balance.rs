//! Connections to the virtual address are spread over the healthy API servers by the kernel.
//!
//! Every control plane has the rules at all times, not only the holder: one that takes the address
//! over is ready at once, and what runs on a control plane goes straight to a server, without the
//! holder.

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
    /// The API's own service.
    pub api: Ipv4Addr,
}

/// Where else packets for the address may have to go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Way {
    /// Who holds the address, if it is another.
    pub holder: Option<Ipv4Addr>,
    /// Who held it before this node did, and lives.
    pub former: Option<Ipv4Addr>,
}

/// All rules at once, in one transaction of the kernel: no connection ever sees half of them.
pub async fn apply(
    reaper: &Reaper,
    service: Service,
    link: &str,
    backends: &BTreeSet<Ipv4Addr>,
    way: Way,
) -> Result<()> {
    let argv = ["nft", "-f", "-"].map(str::to_owned);
    let done = commands::feed(reaper, &argv, rules(service, link, backends, way).as_bytes()).await;
    if done.is_ok() || way.former.is_none() {
        return done.context("balance connections").map(drop);
    }
    // A kernel that cannot pass packets on in their old form does the rest.
    let plain = rules(service, link, backends, Way { former: None, ..way });
    commands::feed(reaper, &argv, plain.as_bytes()).await.context("balance connections").map(drop)
}

fn rules(service: Service, link: &str, backends: &BTreeSet<Ipv4Addr>, way: Way) -> String {
    let Service { vip, port, me, api } = service;
    let spread = spread(backends, me);
    let mut rewritten =
        spread.iter().map(|to| format!("ip daddr {vip} tcp dport {port} {to}")).collect::<Vec<_>>();
    // All else that one finds behind the address is the holder's, for example its registry.
    rewritten.extend(way.holder.map(|ip| format!("ip daddr {vip} tcp dport != {port} dnat to {ip}")));
    let mut text = "table ip manykube_vip {}\ndelete table ip manykube_vip\n".to_owned();
    if rewritten.is_empty() && way.former.is_none() {
        return text;
    }
    text += "table ip manykube_vip {\n";
    for hook in ["prerouting", "output"] {
        // A little before kube-proxy's chains, which know nothing of this address anyway.
        chain(&mut text, hook, &format!("nat hook {hook} priority -110"), &rewritten);
        // A little after them, and before the rule that leads the API's service to this address.
        let early = spread.iter().map(|to| format!("ip daddr {api} tcp dport 443 {to}")).collect::<Vec<_>>();
        chain(&mut text, &format!("early_{hook}"), &format!("nat hook {hook} priority -95"), &early);
    }
    // Answers must come back this way, so what we pass on is sent under our own address. (A process
    // of this node would otherwise send from the virtual address.)
    let own =
        format!("meta l4proto tcp ct status dnat ct original ip daddr {vip} oifname != \"lo\" snat to {me}");
    chain(&mut text, "postrouting", "nat hook postrouting priority 90", &[own]);
    // A connection that is older than our time as the holder goes through the one before us: it gets
    // the packets as they are.
    let stray = way.former.map(|ip| {
        format!(
            "iifname \"{link}\" ip daddr {vip} tcp dport {port} tcp flags & syn == 0 ct state new \
             dup to {ip} device \"{link}\" drop"
        )
    });
    chain(&mut text, "stray", "filter hook prerouting priority -150", stray.as_slice());
    text + "}\n"
}

/// With no server but our own there is nothing to spread: connections go to it as they are, even if
/// it is not healthy, because no other would answer either.
fn spread(backends: &BTreeSet<Ipv4Addr>, me: Ipv4Addr) -> Option<String> {
    if backends.iter().all(|ip| *ip == me) {
        return None;
    }
    let map: Vec<String> = backends.iter().enumerate().map(|(i, ip)| format!("{i} : {ip}")).collect();
    Some(format!("dnat to numgen inc mod {} map {{ {} }}", map.len(), map.join(", ")))
}

fn chain(text: &mut String, name: &str, place: &str, rules: &[String]) {
    if !rules.is_empty() {
        let rules = rules.join("\n    ");
        let _ = write!(text, "  chain {name} {{\n    type {place}; policy accept;\n    {rules}\n  }}\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(last: u8) -> Ipv4Addr {
        Ipv4Addr::new(192, 168, 49, last)
    }

    fn service() -> Service {
        Service { vip: ip(254), port: 8443, me: ip(2), api: Ipv4Addr::new(10, 96, 0, 1) }
    }

    #[test]
    fn rules_name_every_backend_once() {
        let text = rules(service(), "eth0", &[2, 3, 4].map(ip).into(), Way::default());
        let to = "dnat to numgen inc mod 3 map { 0 : 192.168.49.2, 1 : 192.168.49.3, 2 : 192.168.49.4 }\n";
        assert_eq!(
            text.matches(&format!("ip daddr 192.168.49.254 tcp dport 8443 {to}")).count(),
            2,
            "{text}"
        );
        assert_eq!(text.matches(&format!("ip daddr 10.96.0.1 tcp dport 443 {to}")).count(), 2, "{text}");
        assert!(text.contains("snat to 192.168.49.2\n"), "{text}");
        assert!(!text.contains("dup to") && !text.contains("!= 8443"), "{text}");
    }

    #[test]
    fn nothing_is_rewritten_for_ourselves() {
        for backends in [BTreeSet::new(), [ip(2)].into()] {
            let text = rules(service(), "eth0", &backends, Way::default());
            assert!(text.ends_with("delete table ip manykube_vip\n"), "{text}");
        }
        let other = rules(service(), "eth0", &[ip(3)].into(), Way::default());
        assert!(other.contains("mod 1 map { 0 : 192.168.49.3 }"), "{other}");
    }

    #[test]
    fn what_is_not_ours_is_passed_on() {
        let backends = [2, 3].map(ip).into();
        let text = rules(service(), "eth0", &backends, Way { holder: Some(ip(3)), former: None });
        let other = "ip daddr 192.168.49.254 tcp dport != 8443 dnat to 192.168.49.3\n";
        assert_eq!(text.matches(other).count(), 2, "{text}");
        let text = rules(service(), "eth0", &backends, Way { holder: None, former: Some(ip(4)) });
        assert!(text.contains("dup to 192.168.49.4 device \"eth0\" drop\n"), "{text}");
    }
}
