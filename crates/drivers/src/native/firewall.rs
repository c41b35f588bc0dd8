//! Other firewalls of the host. Each has its own word on what is forwarded, and one that drops it is enough: that our
//! table accepts a packet does not help. Docker and ufw set the policy of iptables' FORWARD to drop, so what our guards let
//! through is accepted there, in the words of iptables itself, whose tools refuse a table with rules that they do not know.
//!
//! Our rules come last, just before what would decide anyway: whatever others say of our packets holds. Who is
//! restarted leaves rules of others in FORWARD alone. A firewall with a table of its own (firewalld) is told by its
//! own tools only; then the user is.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use ipnet::Ipv4Net;
use model::{Cluster, Home};
use serde_json::Value;

use super::network::bridge_name;
use super::{borrowed, guard};
use crate::driver::Notice;
use crate::lock;

const LOCK: &str = "/run/xtables.lock";
/// Others are done in a moment.
const LOCKED: Duration = Duration::from_secs(5);

/// The two makes of iptables: each has rules of its own, and a host may use both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Make {
    Nft,
    Legacy,
}

impl Make {
    fn program(self) -> &'static str {
        match self {
            Make::Nft => "/usr/sbin/xtables-nft-multi",
            Make::Legacy => "/usr/sbin/xtables-legacy-multi",
        }
    }

    /// Those that this host uses: where there is no FORWARD, none is made.
    fn in_use(chains: &[Chain]) -> Vec<Make> {
        let nft = chains.iter().any(Chain::is_iptables).then_some(Make::Nft);
        let tables = std::fs::read_to_string("/proc/net/ip_tables_names").unwrap_or_default();
        let legacy = tables.lines().any(|table| table == "filter").then_some(Make::Legacy);
        nft.into_iter().chain(legacy).collect()
    }

    fn run(self, image_rootfs: &Path, name: &str, args: &[&str], input: &str) -> Result<String> {
        // The lock that all others take, which cannot be seen from within the image; there any file does.
        // Nobody else's to open: whoever can lock it can keep all others waiting.
        let file = File::options().create(true).append(true).mode(0o600).open(LOCK);
        let _locked = file
            .and_then(|file| lock::within(LOCKED, &file).map(|()| file))
            .with_context(|| format!("lock {LOCK}"))?;
        let program = self.program();
        borrowed::run(
            image_rootfs,
            program,
            &[&[name], args].concat(),
            &[("XTABLES_LOCKFILE", program)],
            input,
        )
    }

    fn rules(self, image_rootfs: &Path) -> Result<Vec<String>> {
        let said = self.run(image_rootfs, "iptables", &["-S", "FORWARD"], "")?;
        Ok(said.lines().filter(|line| line.starts_with("-A ")).map(str::to_owned).collect())
    }

    /// All at once or not at all.
    fn change(self, image_rootfs: &Path, lines: &[String]) -> Result<()> {
        let script = format!("*filter\n{}\nCOMMIT\n", lines.join("\n"));
        self.run(image_rootfs, "iptables-restore", &["--noflush"], &script).map(drop)
    }
}

/// By this our rules are known.
fn mark(bridge: &str) -> String {
    format!("--comment manykube-{bridge}")
}

/// What our guards let through. They have looked at each packet before iptables does.
fn wanted(bridge: &str, subnet: Ipv4Net) -> [String; 3] {
    let end = format!("-m comment {} -j ACCEPT", mark(bridge));
    [
        format!("-i {bridge} -o {bridge} {end}"),
        format!("-s {subnet} -i {bridge} {end}"),
        format!("-d {subnet} -o {bridge} -m conntrack --ctstate RELATED,ESTABLISHED {end}"),
    ]
}

/// Drops or refuses all that comes this far.
fn is_last_word(rule: &str) -> bool {
    ["-A FORWARD -j DROP", "-A FORWARD -j REJECT"].iter().any(|last| rule.starts_with(last))
}

/// All there, and where they are heard.
fn is_complete(rules: &[String], bridge: &str, subnet: Ipv4Net) -> bool {
    let heard = rules.iter().take_while(|rule| !is_last_word(rule));
    let (mark, subnet) = (mark(bridge), subnet.to_string());
    let ours: Vec<&String> = heard.filter(|rule| rule.contains(&mark)).collect();
    ours.len() == 3 && ours.iter().filter(|rule| rule.contains(&subnet)).count() == 2
}

fn removal(rules: &[String], bridge: &str) -> Vec<String> {
    let ours = rules.iter().filter(|rule| rule.contains(&mark(bridge)));
    ours.map(|rule| rule.replacen("-A ", "-D ", 1)).collect()
}

fn repair(rules: &[String], bridge: &str, subnet: Ipv4Net) -> Vec<String> {
    let mut others = rules.iter().filter(|rule| !rule.contains(&mark(bridge)));
    let place = others.position(|rule| is_last_word(rule));
    let added = wanted(bridge, subnet).into_iter().enumerate().map(|(i, rule)| match place {
        Some(place) => format!("-I FORWARD {} {rule}", place + 1 + i),
        None => format!("-A FORWARD {rule}"),
    });
    removal(rules, bridge).into_iter().chain(added).collect()
}

/// Makes the rules that are lacking.
pub fn open(home: &Home, cluster: &Cluster, image_rootfs: &Path) -> Result<Vec<Notice>> {
    let (bridge, subnet) = (bridge_name(home, &cluster.name), cluster.network.subnet);
    let chains = chains(image_rootfs)?;
    let mut notices = Vec::new();
    for make in Make::in_use(&chains) {
        let opened = make.rules(image_rootfs).and_then(|rules| {
            if is_complete(&rules, &bridge, subnet) {
                return Ok(());
            }
            make.change(image_rootfs, &repair(&rules, &bridge, subnet))
        });
        // Nodes may do without: what the policy is, and whether it matters, is not known.
        if let Err(e) = opened {
            notices.push(Notice::Warning(format!(
                "iptables ({make:?}) of this host could not be told to forward what the cluster sends: {e:#}"
            )));
        }
    }
    notices.extend(chains.iter().filter(|c| c.is_another_firewall()).map(|c| {
        Notice::Warning(format!(
            "The firewall with the nft table {} may drop what nodes send to the outside. With firewalld, allow it by: \
             firewall-cmd --zone=trusted --add-interface={bridge}",
            c.table
        ))
    }));
    Ok(notices)
}

/// Nothing is lacking, as far as we can mend it.
pub fn is_open(home: &Home, cluster: &Cluster, image_rootfs: &Path) -> bool {
    let (bridge, subnet) = (bridge_name(home, &cluster.name), cluster.network.subnet);
    let Ok(chains) = chains(image_rootfs) else { return true };
    Make::in_use(&chains)
        .into_iter()
        .all(|make| make.rules(image_rootfs).map_or(true, |rules| is_complete(&rules, &bridge, subnet)))
}

/// Takes our rules away. Without the bridge they mean nothing: a cluster is deleted also where they cannot be removed.
pub fn close(home: &Home, profile: &str, image_rootfs: &Path) {
    let bridge = bridge_name(home, profile);
    let close = |make: Make| -> Result<()> {
        let removal = removal(&make.rules(image_rootfs)?, &bridge);
        if removal.is_empty() { Ok(()) } else { make.change(image_rootfs, &removal) }
    };
    let closed =
        chains(image_rootfs).and_then(|chains| Make::in_use(&chains).into_iter().try_for_each(close));
    if let Err(e) = closed {
        tracing::warn!("rules for {bridge} may be left in iptables' FORWARD: {e:#}");
    }
}

/// A chain that the kernel calls.
struct Chain {
    family: String,
    table: String,
    name: String,
    drops: bool,
}

impl Chain {
    fn is_iptables(&self) -> bool {
        (self.family.as_str(), self.table.as_str(), self.name.as_str()) == ("ip", "filter", "FORWARD")
    }

    fn is_another_firewall(&self) -> bool {
        let concerned = ["ip", "inet"].contains(&self.family.as_str()) && !self.is_iptables();
        concerned && (self.drops || self.table == "firewalld")
    }
}

/// Those for what is forwarded.
fn chains(image_rootfs: &Path) -> Result<Vec<Chain>> {
    let said = borrowed::run(image_rootfs, guard::NFT, &["-j", "list", "chains"], &[], "")?;
    parse(&said).context("read nft's list of chains")
}

fn parse(said: &str) -> serde_json::Result<Vec<Chain>> {
    let said: Value = serde_json::from_str(said)?;
    let all = said["nftables"].as_array().into_iter().flatten().map(|object| &object["chain"]);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let chain = |c: &Value| Chain {
        family: text(&c["family"]),
        table: text(&c["table"]),
        name: text(&c["name"]),
        drops: c["policy"] == "drop",
    };
    Ok(all.filter(|c| c["hook"] == "forward").map(chain).collect())
}

#[cfg(test)]
#[path = "firewall_tests.rs"]
mod tests;
