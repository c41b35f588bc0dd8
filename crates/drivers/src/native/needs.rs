//! What a number of machines needs of the host's kernel. Pure.
//!
//! All machines are root's and share one kernel, so limits that are meant for one host count for all
//! of them together. The figures were counted on clusters of Kubernetes 1.36 and 1.37 (/proc/PID/fd,
//! fdinfo, task); what users' pods take besides is an allowance.
//!
//! Not here, because they do not grow with the number of machines: fs.nr_open is of one process,
//! conntrack's table is of one network namespace (each machine has its own), and the quota of keys is
//! set by every kubelet.

/// How many machines run at once on this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Crowd {
    pub control_planes: u64,
    pub workers: u64,
}

/// One kernel setting as a sum over the host, its machines and their pods.
struct Need {
    setting: &'static str,
    host: u64,
    control_plane: u64,
    worker: u64,
    /// Allowed for the pods of each machine.
    pods: u64,
}

const fn need(setting: &'static str, host: u64, control_plane: u64, worker: u64, pods: u64) -> Need {
    Need { setting, host, control_plane, worker, pods }
}

const NEEDS: [Need; 5] = [
    // Counted 20 (25 where the controllers lead): kubelet 7, API server 6, controllers 3 to 8,
    // containerd 2, scheduler and kube-proxy 1 each.
    need("fs/inotify/max_user_instances", 1024, 25, 10, 40),
    need("fs/inotify/max_user_watches", 65_536, 170, 50, 8192),
    // Threads, as both limits count them.
    need("kernel/pid_max", 8192, 160, 45, 512),
    need("kernel/threads-max", 8192, 160, 45, 512),
    need("fs/file-max", 65_536, 600, 120, 2048),
];

const NEIGHBOURS: [(&str, u64); 3] = [
    // The kernel's own proportions. The hard limit first: the others may not be above it.
    ("net/ipv4/neigh/default/gc_thresh3", 1),
    ("net/ipv4/neigh/default/gc_thresh2", 2),
    ("net/ipv4/neigh/default/gc_thresh1", 8),
];

/// The least value of each setting. Rounded up to a power of two, so that one more node seldom
/// changes anything.
pub fn settings(crowd: Crowd) -> Vec<(&'static str, u64)> {
    let Crowd { control_planes, workers } = crowd;
    let machines = control_planes + workers;
    let sum = |n: &Need| n.host + control_planes * n.control_plane + workers * n.worker + machines * n.pods;
    // The table of neighbours is one for all network namespaces, and each machine may know all others.
    let neighbours = (256 + machines * (machines + 32)).next_power_of_two();
    NEEDS
        .iter()
        .map(|n| (n.setting, sum(n).next_power_of_two()))
        .chain(NEIGHBOURS.map(|(setting, part)| (setting, neighbours / part)))
        .collect()
}

/// All of these settings.
pub fn names() -> impl Iterator<Item = &'static str> {
    NEEDS.iter().map(|n| n.setting).chain(NEIGHBOURS.map(|(setting, _)| setting))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(crowd: Crowd, setting: &str) -> u64 {
        settings(crowd).into_iter().find(|(s, _)| *s == setting).unwrap().1
    }

    #[test]
    fn one_node_fits_where_a_usual_host_is_set_up_for_many() {
        let one = Crowd { control_planes: 1, workers: 0 };
        assert!(of(one, "kernel/pid_max") <= 32_768);
        assert!(of(one, "net/ipv4/neigh/default/gc_thresh3") <= 1024);
        assert!(of(one, "net/ipv4/neigh/default/gc_thresh1") <= 128);
        assert!(of(one, "fs/inotify/max_user_instances") > 128, "the usual limit is five control planes");
    }

    #[test]
    fn more_nodes_need_more() {
        let many = Crowd { control_planes: 3, workers: 30 };
        let most = Crowd { control_planes: 7, workers: 243 };
        for (setting, value) in settings(many) {
            assert!(of(Crowd::default(), setting) <= value, "{setting}");
            assert!(value <= of(most, setting), "{setting}");
        }
        // 33 nodes that all know each other do not fit into the usual 1024.
        assert_eq!(of(many, "net/ipv4/neigh/default/gc_thresh3"), 4096);
        assert_eq!(of(most, "kernel/pid_max"), 262_144);
    }

    #[test]
    fn at_least_twice_what_was_counted() {
        let many = Crowd { control_planes: 3, workers: 30 };
        assert!(of(many, "fs/inotify/max_user_instances") >= 2 * (3 * 25 + 30 * 10));
        assert!(of(many, "kernel/pid_max") >= 2 * (3 * 160 + 30 * 45));
    }
}
