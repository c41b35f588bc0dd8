//! What the parts of the agent know of each other.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Instant;

use model::node_spec::{
    Hold, NodeSpec, NodeState, PodRoute, PrepareState, STATIC_POD_DIR, ServiceState, VipState,
};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub struct Node {
    pub spec: NodeSpec,
    pub state: RefCell<Known>,
    /// Set when the node goes down: nothing is restarted any more.
    pub stopping: Cell<bool>,
    /// Tells parts that have something to hand over before the node goes down, and who they are.
    pub stop: CancellationToken,
    pub parts: TaskTracker,
    pub hold: watch::Sender<Hold>,
    since: Instant,
}

pub struct Known {
    pub boot_id: String,
    pub network_ready: bool,
    /// Why the node did not come up.
    pub problem: Option<String>,
    /// Services that end again and again, with their last words.
    pub unwell: BTreeMap<&'static str, String>,
    pub prepare: PrepareState,
    pub services: BTreeMap<&'static str, ServiceState>,
    pub vip: Option<VipState>,
    /// Since when the election is as it is.
    pub vip_since: Instant,
    pub routes: Vec<PodRoute>,
}

impl Node {
    pub fn new(spec: NodeSpec) -> Node {
        let known = Known {
            boot_id: String::new(),
            network_ready: false,
            problem: None,
            unwell: BTreeMap::new(),
            prepare: PrepareState::Running { step: String::new() },
            services: BTreeMap::new(),
            vip: None,
            vip_since: Instant::now(),
            routes: Vec::new(),
        };
        Node {
            spec,
            state: RefCell::new(known),
            stopping: Cell::new(false),
            stop: CancellationToken::new(),
            parts: TaskTracker::new(),
            hold: watch::Sender::default(),
            since: Instant::now(),
        }
    }

    pub fn document(&self) -> NodeState {
        let known = self.state.borrow();
        NodeState {
            machine: self.spec.machine.clone(),
            uptime: self.since.elapsed().as_secs(),
            boot_id: known.boot_id.clone(),
            network_ready: known.network_ready,
            stopping: self.stopping.get(),
            problem: problem(&known.problem, &known.unwell),
            prepare: known.prepare.clone(),
            services: known.services.values().cloned().collect(),
            static_pods: static_pods(),
            var_used_percent: var_used_percent(),
            hold: self.hold.borrow().clone(),
            has_vip: match (&known.vip, self.spec.network.api) {
                // On every control plane the kernel takes what comes for it.
                (Some(vip), _) => vip.holder,
                (None, api) => api.is_some_and(|api| is_local(*api.ip())),
            },
            vip: known.vip.clone().map(|vip| VipState { since: known.vip_since.elapsed().as_secs(), ..vip }),
            routes: known.routes.clone(),
        }
    }
}

/// What the host is told. A service that is well again is none any more.
fn problem(boot: &Option<String>, unwell: &BTreeMap<&'static str, String>) -> Option<String> {
    boot.as_ref().or_else(|| unwell.values().next()).cloned()
}

/// Where a disk of the node's own would be, and the host's is without.
fn var_used_percent() -> u8 {
    let Ok(fs) = rustix::fs::statvfs("/var/lib/kubelet").or_else(|_| rustix::fs::statvfs("/var")) else {
        return 0;
    };
    let total = fs.f_blocks - fs.f_bfree + fs.f_bavail;
    let used = fs.f_blocks - fs.f_bfree;
    u8::try_from((used * 100).checked_div(total).unwrap_or(0)).unwrap_or(100)
}

/// Asked of the kernel: kube-vip may have put the address there, or a boot without election.
pub fn is_local(address: Ipv4Addr) -> bool {
    let Ok(addresses) = nix::ifaddrs::getifaddrs() else { return false };
    addresses.filter_map(|a| a.address).any(|a| a.as_sockaddr_in().is_some_and(|a| a.ip() == address))
}

fn static_pods() -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(STATIC_POD_DIR) else { return Vec::new() };
    let mut names: Vec<String> = entries.flatten().filter_map(|e| e.file_name().into_string().ok()).collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_that_is_well_again_is_no_problem() {
        let mut unwell = BTreeMap::from([("kubelet", "kubelet ends again and again".to_owned())]);
        assert!(problem(&None, &unwell).is_some());
        unwell.remove("kubelet");
        assert_eq!(problem(&None, &unwell), None);
        let boot = Some("no network".to_owned());
        assert_eq!(problem(&boot, &unwell), boot, "that stays");
    }

    #[test]
    fn the_kernel_knows_the_addresses() {
        assert!(is_local(Ipv4Addr::LOCALHOST));
        assert!(!is_local(Ipv4Addr::new(192, 0, 2, 254)));
    }
}
