//! What a cluster makes of its host: what others had open, and for whom it is a router.

use std::path::Path;
use std::process::{Command, Output};

use system_tests::{Lab, Ran};

const FORWARD: &str = "/proc/sys/net/ipv4/ip_forward";

fn forwards() -> bool {
    std::fs::read_to_string(FORWARD).expect("a setting").trim() == "1"
}

/// As a host that is no router and has no engine: a new network namespace may have it from elsewhere.
pub fn forwards_nothing() {
    std::fs::write(FORWARD, "0").expect("change a setting of this namespace");
}

/// By a caller that has a directory of the host open, as CI runners and editors have.
pub fn manykube_with_a_leak(lab: &Lab, args: &[&str]) -> Ran {
    let began = std::time::Instant::now();
    let inner = lab.command(args);
    let mut outer = Command::new("bash");
    outer.args(["-c", "exec 7</etc; exec \"$0\" \"$@\""]).arg(inner.get_program()).args(inner.get_args());
    outer.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output: Output = outer.stdin(std::process::Stdio::null()).output().expect("run bash");
    Ran::new(args.join(" "), output, began.elapsed())
}

/// Of a cluster that was started so: neither its first processes nor commands have it.
pub fn nothing_that_was_open_is_in_a_node(lab: &Lab) {
    let open = "ls -l /proc/1/fd /proc/self/fd | grep -c -- '-> /etc$'";
    for node in [&["ssh"][..], &["ssh", "-n", "m02"]] {
        let ran = manykube_with_a_leak(lab, &[node, &["--", open]].concat());
        assert_eq!(ran.text(), "0", "{}", ran.stderr);
    }
}

/// While the cluster is up; the rule itself is tried in crates/drivers/src/native/forwarding.rs.
pub fn forwards_for_machines_only() {
    assert!(forwards(), "nodes need it");
    let table = super::run(Command::new("nft").args(["list", "table", "ip", "manykube-forwarding"]));
    assert!(table.contains("drop"), "{table}");
}

pub fn is_as_before() {
    assert!(!forwards(), "it is a router still");
    let tables = super::run(Command::new("nft").args(["list", "tables"]));
    assert!(!tables.contains("manykube"), "{tables}");
    let lock = Path::new("/run/manykube/lock");
    // Another test's cluster may be there.
    if let Ok(lock) = std::fs::metadata(lock) {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(lock.permissions().mode() & 0o777, 0o600, "every user could keep us waiting");
    }
}
