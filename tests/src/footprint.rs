use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::neighbours::{Neighbours, pids};
use crate::{Lab, eventually};

/// Everything on a host that a lab's clusters could leave behind, as sets that can be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Footprint {
    places: Vec<PathBuf>,
    /// Nobody else has a cluster on this host: what is set for all of it is set by this lab.
    alone: bool,
    pub processes: BTreeSet<String>,
    pub mounts: BTreeSet<String>,
    /// Files of this lab that are block devices.
    pub disks: BTreeSet<String>,
    pub namespaces: BTreeSet<String>,
    pub links: BTreeSet<String>,
    pub routes: BTreeSet<String>,
    pub nft_tables: BTreeSet<String>,
    pub cgroups: BTreeSet<String>,
    pub settings: BTreeSet<String>,
}

const SETTINGS: [&str; 11] = [
    "net/ipv4/ip_forward",
    "fs/inotify/max_user_instances",
    "fs/inotify/max_user_watches",
    "kernel/panic",
    "kernel/panic_on_oops",
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/pid_max",
    "kernel/threads-max",
    "kernel/keys/root_maxkeys",
    "fs/file-max",
];

impl Footprint {
    /// Of this thread's network namespace and of the whole host otherwise, but for what others have on it.
    pub fn take(lab: &Lab) -> Footprint {
        Footprint::of(lab.places())
    }

    fn of(places: Vec<PathBuf>) -> Footprint {
        let others = Neighbours::of(&places);
        Footprint {
            alone: others.none(),
            processes: processes(&others),
            mounts: lines("/proc/self/mountinfo").into_iter().filter(|m| !others.have_mount(m)).collect(),
            disks: disks(&places),
            namespaces: namespaces(&others),
            links: lines("/proc/thread-self/net/dev")
                .into_iter()
                .filter_map(|l| Some(l.split_once(':')?.0.trim().to_owned()))
                .collect(),
            // Its other lines tell how the kernel has arranged them.
            routes: lines("/proc/thread-self/net/fib_trie")
                .into_iter()
                .filter(|l| l.contains("|--"))
                .collect(),
            nft_tables: nft_tables(),
            cgroups: directories(Path::new("/sys/fs/cgroup"))
                .into_iter()
                .filter(|d| d.contains("kube") && !others.have_group(d))
                .collect(),
            settings: SETTINGS
                .iter()
                .map(|s| format!("{s} = {}", read(&format!("/proc/sys/{s}")).trim()))
                .collect(),
            places,
        }
    }

    /// Panics when something is there that was not before. The kernel and the host's init may take a
    /// moment to bury what has died, and a neighbour's machine that waits for its disk (10 s) has a group and nobody in it
    /// by whom it could be told from ours.
    #[track_caller]
    pub fn assert_nothing_left(&self) {
        eventually("nothing is left behind", Duration::from_secs(30), || {
            let left = Footprint::of(self.places.clone()).left_since(self);
            if left.is_empty() { Ok(()) } else { Err(left.join("\n")) }
        });
    }

    /// What is in this one and was not in `before`, one line each; empty when nothing is left.
    fn left_since(&self, before: &Footprint) -> Vec<String> {
        let pairs = [
            ("process", &self.processes, &before.processes),
            ("mount", &self.mounts, &before.mounts),
            ("disk", &self.disks, &before.disks),
            ("namespace", &self.namespaces, &before.namespaces),
            ("link", &self.links, &before.links),
            ("route", &self.routes, &before.routes),
            ("nft table", &self.nft_tables, &before.nft_tables),
            ("cgroup", &self.cgroups, &before.cgroups),
            ("setting", &self.settings, &before.settings),
        ];
        // Others raise what their clusters need, and lower it again.
        let comparable = if self.alone && before.alone { pairs.len() } else { pairs.len() - 1 };
        pairs[..comparable]
            .iter()
            .flat_map(|(kind, now, then)| now.difference(then).map(move |x| format!("{kind}: {x}")))
            .collect()
    }
}

pub fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

fn lines(path: &str) -> BTreeSet<String> {
    read(path).lines().map(str::to_owned).collect()
}

/// By the kernel's word, also of files that were removed since.
fn disks(places: &[PathBuf]) -> BTreeSet<String> {
    let devices = std::fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let files = devices.map(|device| read(&device.path().join("loop/backing_file").to_string_lossy()));
    files.filter(|file| places.iter().any(|place| Path::new(file).starts_with(place))).collect()
}

/// What a cluster could have started: everything in a machine's cgroup or in this test's network, and
/// programs of ours wherever they are. Other users of the host come and go as they like.
fn of_clusters(others: &Neighbours) -> Vec<u32> {
    let me = std::process::id();
    let net = std::fs::read_link("/proc/thread-self/ns/net").ok();
    let ours = |pid: &u32| {
        std::fs::read_link(format!("/proc/{pid}/ns/net")).ok() == net
            || !others.have_process(*pid)
                && (read(&format!("/proc/{pid}/cgroup")).contains("/manykube/")
                    || read(&format!("/proc/{pid}/comm")).trim() == "manykube")
    };
    pids().into_iter().filter(|pid| *pid != me).filter(ours).collect()
}

/// Zombies too, but no kernel threads.
fn processes(others: &Neighbours) -> BTreeSet<String> {
    of_clusters(others)
        .into_iter()
        .filter_map(|pid| {
            let stat = read(&format!("/proc/{pid}/stat"));
            let (head, tail) = stat.rsplit_once(')')?;
            let parent = tail.split_ascii_whitespace().nth(1)?;
            let kernel = pid == 2 || parent == "2";
            (!kernel).then(|| head.to_owned())
        })
        .collect()
}

fn namespaces(others: &Neighbours) -> BTreeSet<String> {
    let kinds = ["mnt", "pid", "net", "uts", "ipc", "cgroup"];
    of_clusters(others)
        .into_iter()
        .flat_map(|pid| kinds.map(|kind| std::fs::read_link(format!("/proc/{pid}/ns/{kind}"))))
        .filter_map(|link| Some(link.ok()?.to_string_lossy().into_owned()))
        .collect()
}

/// Asks the host's nft: the test's own eyes, not the product's.
fn nft_tables() -> BTreeSet<String> {
    let output = std::process::Command::new("nft").args(["list", "tables"]).output().expect("run nft");
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

fn directories(root: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut todo = vec![root.to_owned()];
    while let Some(dir) = todo.pop() {
        for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|t| t.is_dir()) {
                found.insert(entry.path().display().to_string());
                todo.push(entry.path());
            }
        }
    }
    found
}
