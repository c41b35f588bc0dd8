//! Kernel settings of the node.

use std::path::Path;

/// All of the node's own network namespace.
const SETTINGS: [(&str, &str); 8] = [
    ("net/ipv4/ip_forward", "1"),
    // Pods' packets come in by cables the reverse path does not name.
    ("net/ipv4/conf/all/rp_filter", "0"),
    ("net/ipv4/conf/default/rp_filter", "0"),
    // The virtual address moves between nodes: nobody may answer for what it does not hold.
    ("net/ipv4/conf/all/arp_ignore", "1"),
    ("net/ipv4/conf/all/arp_announce", "2"),
    // The holder sends connections on by the link they came in: that is meant so, nobody has to be
    // told a shorter way.
    ("net/ipv4/conf/all/send_redirects", "0"),
    ("net/ipv4/conf/default/send_redirects", "0"),
    ("net/ipv4/ping_group_range", "0 2147483647"),
];

pub fn apply() {
    for (name, value) in SETTINGS {
        set(name, value);
    }
}

/// What a link that was there before us has not from the defaults.
pub fn apply_to_link(link: &str) {
    set(&format!("net/ipv4/conf/{link}/send_redirects"), "0");
}

fn set(name: &str, value: &str) {
    // A kernel without the setting also has nothing that it would change.
    if let Err(e) = std::fs::write(Path::new("/proc/sys").join(name), value) {
        tracing::warn!("{name} = {value}: {e}");
    }
}
