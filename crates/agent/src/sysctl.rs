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
    // No pod and no other node becomes this one's router by saying so.
    ("net/ipv6/conf/default/accept_ra", "0"),
];

/// Who may ask whether somebody is there: everybody.
const PING: &str = "net/ipv4/ping_group_range";
/// The most that the kernel takes.
const MOST: u32 = 2_147_483_647;

pub fn apply() {
    for (name, value) in SETTINGS {
        set(name, value);
    }
    let groups = std::fs::read_to_string("/proc/self/gid_map").unwrap_or_default();
    set(PING, &format!("0 {}", last_group(&groups)));
}

/// The highest number up to which there are all groups: in a user namespace there are not as many as elsewhere, and
/// the kernel takes no other ones.
fn last_group(map: &str) -> u32 {
    let numbers = |line: &str| -> Option<(u32, u32)> {
        let mut words = line.split_whitespace().map(str::parse);
        Some((words.next()?.ok()?, words.nth(1)?.ok()?))
    };
    let mut ranges: Vec<(u32, u32)> = map.lines().filter_map(numbers).collect();
    ranges.sort_unstable();
    let together =
        |end: u32, (first, count): (u32, u32)| if first == end { end.saturating_add(count) } else { end };
    let end = ranges.into_iter().fold(0, together);
    if end == 0 { MOST } else { MOST.min(end - 1) }
}

/// What a link that was there before us has not from the defaults.
pub fn apply_to_link(link: &str) {
    set(&format!("net/ipv4/conf/{link}/send_redirects"), "0");
    set(&format!("net/ipv6/conf/{link}/accept_ra"), "0");
}

fn set(name: &str, value: &str) {
    match std::fs::write(Path::new("/proc/sys").join(name), value) {
        // A kernel without the setting also has nothing that it would change.
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => tracing::warn!("{name} = {value}: {e}"),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_groups_as_there_are() {
        assert_eq!(last_group("         0          0 4294967295\n"), MOST);
        assert_eq!(
            last_group("         0       1000          1\n         1     100000      65536\n"),
            65_536
        );
        assert_eq!(last_group("0 1000 1\n5 100000 10\n"), 0);
        assert_eq!(last_group(""), MOST);
    }
}
