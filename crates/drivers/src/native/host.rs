//! Settings of the whole host that machines need or that their kubelets change.
//!
//! What is the host's is noted once for all homes, in /run: it lasts as long as the settings do. The
//! last machine on the host puts it back. What is a network namespace's belongs to the home that
//! works in it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Result;
use model::{Cluster, Home};

use super::cgroup;
use super::needs::{self, Crowd};
use super::settings::{self, Raised, Settings};
use crate::driver::Notice;
use crate::machine::Paths;
use crate::process::{self, Identity};
use crate::user_namespace;

const KERNEL: &str = "/proc/sys";
const RUN: &str = "/run/manykube";
/// What a rootless engine sees of the host's /run are links to what was there when it began.
const ROOTLESS_RUN: &str = "/run/manykube-rootless";
const CONTAINED: &str = "contained";

/// Nodes reach the outside through the host.
const FORWARD: &str = "net/ipv4/ip_forward";

/// What every kubelet sets for the whole host, as it cannot know that it is not alone.
const KUBELET_SETS: [&str; 6] = [
    "kernel/panic",
    "kernel/panic_on_oops",
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
];

fn run() -> &'static Path {
    Path::new(if user_namespace::is_own() { ROOTLESS_RUN } else { RUN })
}

fn of_host() -> Settings {
    Settings::new(KERNEL, run().join("host-settings.json"))
}

fn of_namespace(home: &Home) -> Settings {
    Settings::new(KERNEL, home.root().join("host-settings.json"))
}

/// Makes room for all nodes of the cluster beside what runs on this host already.
pub fn prepare(home: &Home, cluster: &Cluster) -> Result<Vec<Notice>> {
    let _lock = settings::lock(run())?;
    let mut raised = of_host().raise(&needs::settings(crowd(home, cluster)?), &KUBELET_SETS)?;
    raised.extend(of_namespace(home).raise(&[(FORWARD, 1)], &[])?);
    Ok(notices(&raised, cluster.nodes.len()))
}

/// All nodes of the cluster, running or not, and every other machine that runs here. What those are
/// is not known: the larger kind is assumed.
fn crowd(home: &Home, cluster: &Cluster) -> Result<Crowd> {
    let control_planes = cluster.control_planes().count() as u64;
    let all = cluster.nodes.len() as u64;
    let own: BTreeSet<PathBuf> = cluster
        .nodes
        .iter()
        .map(|node| cluster.machine(node))
        .map(|machine| cgroup::path(&machine, Paths::new(home, &machine).dir()))
        .collect();
    let inits = cluster.nodes.iter().filter_map(|n| Paths::new(home, &cluster.machine(n)).running());
    let inits: Vec<_> = inits.collect();
    let others = cgroup::running()?.into_iter().filter(|path| !own.contains(path)).count()
        + contained().into_iter().filter(|init| !inits.contains(init)).count();
    Ok(Crowd { control_planes: control_planes + others as u64, workers: all - control_planes })
}

/// One line for what was raised, one for what could not be.
fn notices(raised: &[Raised], nodes: usize) -> Vec<Notice> {
    let list = |refused: bool| -> Vec<String> {
        // Forwarding is a part of the network, nothing that nodes use up.
        let those =
            raised.iter().filter(|r| r.refused.is_some() == refused && (refused || r.setting != FORWARD));
        those.map(|r| format!("{} {} -> {}", settings::name(&r.setting), r.from, r.to)).collect()
    };
    let nodes = if nodes == 1 { "1 node".to_owned() } else { format!("{nodes} nodes") };
    let (done, refused) = (list(false), list(true));
    let by_hand = raised.iter().filter(|r| r.refused.is_some());
    let by_hand: Vec<String> = by_hand.map(|r| format!("{}={}", settings::name(&r.setting), r.to)).collect();
    let why = raised.iter().find_map(|r| r.refused.as_deref()).unwrap_or_default();
    let told = (!done.is_empty()).then(|| {
        Notice::Told(format!("Raised for {nodes}, until the last machine stops: {}", done.join(", ")))
    });
    let warned = (!refused.is_empty()).then(|| {
        Notice::Warning(format!(
            "{nodes} may need more than this host allows, and it could not be raised ({why}): {}; as root, run: sysctl -w {}",
            refused.join(", "),
            by_hand.join(" ")
        ))
    });
    told.into_iter().chain(warned).collect()
}

/// Notes a machine whose cgroup is somebody else's, until it ends: our own are found by theirs.
pub fn note_contained(init: &Identity) -> Result<()> {
    let dir = run().join(CONTAINED);
    fs_err::create_dir_all(&dir)?;
    Ok(fs_err::write(dir.join(init.pid.to_string()), serde_json::to_vec(init)?)?)
}

/// Those that run; what is noted of others is forgotten.
fn contained() -> Vec<Identity> {
    let notes = std::fs::read_dir(run().join(CONTAINED)).into_iter().flatten().flatten();
    let read = |path: &Path| serde_json::from_slice::<Identity>(&std::fs::read(path).ok()?).ok();
    let alive = |path: PathBuf| {
        let init = read(&path).filter(process::is_alive);
        if init.is_none() {
            let _ = std::fs::remove_file(path);
        }
        init
    };
    notes.filter_map(|note| alive(note.path())).collect()
}

fn other_bridges() -> bool {
    let links = std::fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    links.into_iter().any(|l| l.path().join("bridge").is_dir())
}

/// When the home's last machine has stopped.
pub fn restore(home: &Home) -> Result<()> {
    // Who is not root has changed none.
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let _lock = settings::lock(run())?;
    // Somebody else's bridge (Docker's, another home's) needs it now, whatever was before us.
    of_namespace(home).restore(|setting| setting == FORWARD && other_bridges())?;
    if cgroup::running()?.is_empty() && contained().is_empty() {
        of_host().restore(|_| false)?;
        if !run().join("host-settings.json").exists() {
            let _ = std::fs::remove_dir_all(run());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_says_what_was_raised() {
        let raised = |setting: &str, refused: Option<&str>| Raised {
            setting: setting.into(),
            from: 128,
            to: 4096,
            refused: refused.map(str::to_owned),
        };
        let all = [
            raised("fs/inotify/max_user_instances", None),
            raised(FORWARD, None),
            raised("kernel/pid_max", Some("read-only")),
        ];
        assert_eq!(
            notices(&all, 33),
            [
                Notice::Told("Raised for 33 nodes, until the last machine stops: fs.inotify.max_user_instances 128 -> 4096".into()),
                Notice::Warning("33 nodes may need more than this host allows, and it could not be raised (read-only): kernel.pid_max 128 -> 4096; as root, run: sysctl -w kernel.pid_max=4096".into()),
            ]
        );
        assert!(notices(&[raised(FORWARD, None)], 1).is_empty());
    }
}
