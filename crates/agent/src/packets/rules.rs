//! Packets that get lost, as rules for nft.
//!
//! They are hooked to the link itself, below ARP and routing: what the node forwards for its pods and what it answers
//! for the virtual address is lost as well.

use model::address::mac_text;
use model::injected::{LOSS_OF, PacketFaults};

const TABLE: &str = "manykube_faults";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hooks {
    Both,
    /// Of the link. What goes out is lost further up then, which knows of no hardware addresses: packets to a node that
    /// this one is cut from are lost by that node's rules.
    Ingress,
}

/// In place of all that was there, in one transaction. `tables` is what nft lists.
pub fn script(tables: &str, link: &str, faults: &PacketFaults, hooks: Hooks) -> String {
    let own = tables.lines().filter(|line| line.split(' ').nth(2) == Some(TABLE));
    let mut text: String = own.map(|line| format!("delete {line}\n")).collect();
    let all = faults.cut || faults.slowness.loss >= LOSS_OF;
    if !all && faults.cut_from.is_empty() && faults.slowness.loss == 0 {
        return text;
    }
    let share = match faults.slowness.loss {
        // nft takes no share that is the whole.
        0 | LOSS_OF.. => String::new(),
        loss => format!("numgen random mod {LOSS_OF} < {loss} drop\n"),
    };
    let of_link = |hook: &str, peer: &str| {
        let policy = if all { "drop" } else { "accept" };
        let from = addresses(faults, peer);
        format!(
            "chain {hook} {{\ntype filter hook {hook} device \"{link}\" priority -500; policy {policy};\n{from}{share}}}\n"
        )
    };
    let ingress = of_link("ingress", "saddr");
    if hooks == Hooks::Both {
        return text + &table("netdev", &(ingress + &of_link("egress", "daddr")));
    }
    text += &table("netdev", &ingress);
    let lost = if all { "drop\n".to_owned() } else { share };
    if lost.is_empty() {
        return text;
    }
    let rule = format!("oifname \"{link}\" {lost}");
    for (family, hook, priority) in [("inet", "postrouting", 300), ("arp", "output", 0)] {
        let head = format!("type filter hook {hook} priority {priority}; policy accept;");
        text += &table(family, &format!("chain out {{\n{head}\n{rule}}}\n"));
    }
    text
}

fn table(family: &str, chains: &str) -> String {
    format!("table {family} {TABLE} {{\n{chains}}}\n")
}

/// By hardware addresses: packets of pods, of the virtual address and of connections that are passed on have other
/// addresses of IP than the node that sends them.
fn addresses(faults: &PacketFaults, peer: &str) -> String {
    if faults.cut_from.is_empty() {
        return String::new();
    }
    let all: Vec<String> = faults.cut_from.iter().map(|ip| mac_text(*ip)).collect();
    format!("ether {peer} {{ {} }} drop\n", all.join(", "))
}
