//! Kernel settings of the node.

use std::path::Path;

use anyhow::Result;

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

/// On cgroup v2 a group with controllers for its children may hold no process itself: everything of
/// ours moves into a leaf, then the kubelet can make its own groups beside it.
pub fn delegate_cgroup() -> Result<()> {
    let root = Path::new("/sys/fs/cgroup");
    let Ok(controllers) = std::fs::read_to_string(root.join("cgroup.controllers")) else { return Ok(()) };
    let leaf = root.join("init.scope");
    fs_err::create_dir_all(&leaf)?;
    for pid in fs_err::read_to_string(root.join("cgroup.procs"))?.lines() {
        // One that has ended meanwhile need not be moved.
        let _ = std::fs::write(leaf.join("cgroup.procs"), pid);
    }
    let wanted: Vec<String> = controllers.split_ascii_whitespace().map(|c| format!("+{c}")).collect();
    fs_err::write(root.join("cgroup.subtree_control"), wanted.join(" ")).map_err(Into::into)
}
