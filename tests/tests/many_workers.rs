//! Many nodes at once: a cluster that grows by eight workers in one command, and what that needs of the host.

use system_tests::{Footprint, Lab};

const WORKERS: usize = 8;

#[test]
fn workers_come_by_the_dozen() {
    let lab = Lab::new();
    let before = Footprint::take(&lab);
    lab.manykube(&["start"]).ok();
    let added = lab.manykube(&["node", "add", &format!("--count={WORKERS}")]).ok();
    println!("{WORKERS} workers: {:.1} s", added.elapsed.as_secs_f32());

    // `node add` returns when they are Ready, each with its own range of pods.
    let nodes = lab.kubectl(&["get", "nodes", "-o", "json"]).ok().json();
    let items = nodes["items"].as_array().cloned().unwrap_or_default();
    let is_ready = |n: &serde_json::Value| {
        let conditions = n["status"]["conditions"].as_array();
        conditions.into_iter().flatten().any(|c| c["type"] == "Ready" && c["status"] == "True")
    };
    assert!(items.iter().all(is_ready), "{nodes}");
    let mut ranges: Vec<&str> = items.iter().filter_map(|n| n["spec"]["podCIDR"].as_str()).collect();
    ranges.sort_unstable();
    ranges.dedup();
    assert_eq!(ranges.len(), WORKERS + 1);

    // 10 instances a worker, 20 a control plane, and the usual limit is 128.
    let limit = std::fs::read_to_string("/proc/sys/fs/inotify/max_user_instances").expect("a limit");
    assert!(limit.trim().parse::<usize>().expect("a number") >= 1024, "{limit}");

    lab.nothing_to_do();
    lab.manykube(&["delete"]).ok();
    before.assert_nothing_left();
}
