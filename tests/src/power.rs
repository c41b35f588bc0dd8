//! The host of an engine loses its power: nobody is asked to end, and what was in memory only is gone.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::{Lab, eventually, neighbours};

/// The engine with all that runs in it and beside it, its mounts, groups and `/run`, links and rules of the network. It
/// is up again afterwards, as a host is that has booted.
pub fn lost(lab: &mut Lab) {
    let engine = lab.engine.as_mut().expect("an engine");
    let all = with_children(of_this_network());
    let groups: BTreeSet<String> =
        all.iter().filter_map(|pid| neighbours::group(pid.unsigned_abs())).collect();
    for pid in &all {
        let _ = kill(Pid::from_raw(*pid), Signal::SIGKILL);
    }
    engine.reap();
    eventually("the end of all processes", Duration::from_secs(20), || {
        let left: Vec<&i32> = all.iter().filter(|pid| lives(**pid)).collect();
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    });
    for point in mounts_below(engine.dir()) {
        let done = Command::new("umount").arg("--lazy").arg(&point).status().expect("run umount");
        assert!(done.success(), "umount {point}");
    }
    for name in ["run", "pid", "docker.sock"] {
        let path = engine.dir().join(name);
        let _ = if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
    }
    forget_the_network();
    groups.iter().for_each(|group| forget_group(group));
    engine.up();
}

/// A host that boots has none. In every hierarchy that there is.
fn forget_group(group: &str) {
    let root = Path::new("/sys/fs/cgroup");
    let trees = std::fs::read_dir(root).into_iter().flatten().flatten().map(|tree| tree.path());
    for tree in trees.chain([root.to_owned()]) {
        remove(&tree.join(group.trim_start_matches('/')));
    }
}

/// Files there go with their directory, and nothing else removes them.
fn remove(group: &Path) {
    let entries = std::fs::read_dir(group).into_iter().flatten().flatten();
    for below in entries.filter(|e| e.file_type().is_ok_and(|kind| kind.is_dir())) {
        remove(&below.path());
    }
    let _ = std::fs::remove_dir(group);
}

/// Whoever is in this thread's network namespace, but for this test.
fn of_this_network() -> Vec<i32> {
    let network = |of: &str| std::fs::read_link(format!("/proc/{of}/ns/net")).ok();
    let (own, me) = (network("thread-self"), std::process::id().to_string());
    let pids = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = pids.filter_map(|e| e.file_name().into_string().ok());
    pids.filter(|pid| *pid != me && network(pid) == own).filter_map(|pid| pid.parse().ok()).collect()
}

/// The first process of a container is its shim's child, and takes all others of its namespace along.
fn with_children(pids: Vec<i32>) -> Vec<i32> {
    let children = |pid: &i32| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        text.split_whitespace().filter_map(|child| child.parse().ok()).collect::<Vec<i32>>()
    };
    let more: Vec<i32> = pids.iter().flat_map(children).collect();
    pids.into_iter().chain(more).collect()
}

/// A zombie does not.
fn lives(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// The innermost first.
fn mounts_below(dir: &Path) -> Vec<String> {
    let text = std::fs::read_to_string("/proc/self/mountinfo").expect("mounts");
    let points = text.lines().filter_map(|line| line.split(' ').nth(4));
    let mut points: Vec<String> =
        points.filter(|p| Path::new(p).starts_with(dir)).map(str::to_owned).collect();
    points.reverse();
    points
}

fn forget_the_network() {
    let run = |args: &[&str]| {
        let output = Command::new(args[0]).args(&args[1..]).output().expect("run a tool of the host's");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    run(&["nft", "flush", "ruleset"]);
    let links = run(&["ip", "-o", "link"]);
    for link in links.lines().filter_map(|l| l.split(": ").nth(1)).filter(|name| *name != "lo") {
        run(&["ip", "link", "delete", link.split('@').next().unwrap_or(link)]);
    }
}
