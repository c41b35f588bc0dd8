//! Going down in order: first what starts things, then what runs, then ourselves, and with us the
//! namespace with all that is left in it.

use std::rc::Rc;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::time::{sleep, timeout};

use crate::state::Node;

/// Pods get this long to end by themselves.
const PODS: Duration = Duration::from_secs(5);
const HAND_OVER: Duration = Duration::from_millis(500);
const SERVICE: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(10);

pub async fn run(node: &Rc<Node>) {
    node.stopping.set(true);
    // First of all, while everything still works, what others can take over.
    node.stop.cancel();
    node.parts.close();
    if timeout(HAND_OVER, node.parts.wait()).await.is_err() {
        tracing::warn!("not everything was handed over in {HAND_OVER:?}");
    }
    stop_service(node, "kubelet").await;
    // Everything in the namespace but us: the processes of all pods, and containerd, which leaves
    // its containers alone when it ends.
    let _ = kill(Pid::from_raw(-1), Signal::SIGTERM);
    let began = Instant::now();
    while began.elapsed() < PODS && workloads() > 0 {
        sleep(LOOK).await;
    }
    let left = workloads();
    if left > 0 {
        tracing::warn!("{left} processes did not end in {PODS:?} and are killed");
    }
    rustix::fs::sync();
}

pub async fn stop_service(node: &Node, name: &str) {
    let pid = node.state.borrow().services.get(name).and_then(|s| s.pid);
    let Some(pid) = pid.and_then(|p| i32::try_from(p).ok()).map(Pid::from_raw) else { return };
    let _ = kill(pid, Signal::SIGTERM);
    let began = Instant::now();
    while began.elapsed() < SERVICE && node.state.borrow().services.get(name).is_some_and(|s| s.running) {
        sleep(LOOK).await;
    }
}

/// Processes that may still have something to write: all but shims, which only watch over them, and
/// what has no program (zombies).
fn workloads() -> usize {
    let Ok(entries) = std::fs::read_dir("/proc") else { return 0 };
    let pids = entries.flatten().filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| *pid != 1)
        .filter(|pid| {
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            let running = std::fs::read_link(format!("/proc/{pid}/exe")).is_ok();
            running && !name.starts_with("containerd-shim")
        })
        .count()
}
