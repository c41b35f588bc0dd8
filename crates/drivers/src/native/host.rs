//! Settings of the whole host that machines need or that their kubelets change.
//!
//! What they were is noted once for all homes, in /run: it lasts as long as the settings do. The last machine on the host
//! puts it back; forwarding, which is a network namespace's, the last of our bridges there. A command that has
//! prepared the host counts as a machine until it ends.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Result;
use ipnet::Ipv4Net;
use model::address::overlap;
use model::{Cluster, Home};
use netlink::{Link, Netlink};

use super::commands::Note;
use super::needs::{self, Crowd};
use super::network::{self, BRIDGES};
use super::settings::{self, Raised, Settings};
use super::{cgroup, commands, forwarding};
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
    let ours = KUBELET_SETS.into_iter().chain(needs::names()).collect();
    Settings::new(KERNEL, run().join("host-settings.json"), ours)
}

fn of_namespace() -> Settings {
    let record = format!("forwarding-{}.json", commands::network());
    Settings::new(KERNEL, run().join(record), vec![FORWARD])
}

/// Held while something of the host is looked at and changed, by commands of all homes.
pub fn lock() -> Result<std::fs::File> {
    settings::lock(run())
}

/// Makes room for all nodes of the cluster beside what runs on this host already.
pub fn prepare(home: &Home, cluster: &Cluster, image_rootfs: &Path) -> Result<Vec<Notice>> {
    let _lock = lock()?;
    commands::note(run(), cluster.network.subnet)?;
    let mut raised = of_host().raise(&needs::settings(crowd(home, cluster)?), &KUBELET_SETS)?;
    raised.extend(of_namespace().raise(&[(FORWARD, 1)], &[])?);
    let mut notices = notices(&raised, cluster.nodes.len());
    if of_namespace().has_raised(FORWARD)
        && let Err(e) = forwarding::up(image_rootfs)
    {
        notices.push(Notice::Warning(format!(
            "While clusters run, this host forwards between its own networks as well; a rule against it could not be made: {e:#}"
        )));
    }
    Ok(notices)
}

/// No other command chooses this subnet while this one lives; `false` when it is taken by now.
pub async fn reserve(subnet: Ipv4Net) -> Result<bool> {
    // Who is not root makes no network.
    if !rustix::process::geteuid().is_root() {
        return Ok(true);
    }
    reserve_in(run(), subnet).await
}

async fn reserve_in(run: &Path, subnet: Ipv4Net) -> Result<bool> {
    let _lock = settings::lock(run)?;
    let mut taken = network::of_host().await?;
    taken.extend(reserved_in(run));
    let free = !taken.into_iter().any(|other| overlap(other, subnet));
    if free {
        commands::note(run, subnet)?;
    }
    Ok(free)
}

/// Subnets in this network namespace that other commands are about to use.
pub fn reserved() -> Vec<Ipv4Net> {
    reserved_in(run())
}

fn reserved_in(run: &Path) -> Vec<Ipv4Net> {
    let here = commands::network();
    commands::others(run).into_iter().filter(|note| note.network == here).map(|note| note.subnet).collect()
}

/// At the end of a command: what it had in mind is there, or will not be.
pub fn command_ends() {
    commands::forget(run());
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

/// When the home's last machine has stopped.
pub async fn restore(home: &Home, image_rootfs: &Path) -> Result<()> {
    // Who is not root has changed none.
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let _lock = lock()?;
    // An earlier version noted it there, without the boot that it is of.
    let _ = std::fs::remove_file(home.root().join("host-settings.json"));
    let others = commands::others(run());
    let mut bridges = Netlink::open()?.links().await?;
    bridges.retain(|link| link.is_bridge);
    if !needs_forwarding(&others, commands::network(), &bridges) {
        // Another program's bridge (Docker's) needs it now, whatever was before us.
        of_namespace().restore(|_| !bridges.is_empty())?;
        // A cluster is stopped also where there is no nft to be borrowed any more.
        if let Err(e) = forwarding::down(image_rootfs) {
            tracing::warn!("the rule against forwarding for others may be left: {e:#}");
        }
    }
    if others.is_empty() && cgroup::running()?.is_empty() && contained().is_empty() {
        of_host().restore(|_| false)?;
        tidy();
    }
    Ok(())
}

/// Of this network namespace, by whatever home: there is a network of ours, or will be in a moment.
fn needs_forwarding(others: &[Note], here: u64, bridges: &[Link]) -> bool {
    others.iter().any(|note| note.network == here) || bridges.iter().any(|b| b.name.starts_with(BRIDGES))
}

/// Takes the directory away, unless another home or namespace has notes in it.
fn tidy() {
    for notes in [CONTAINED, commands::DIR] {
        let _ = std::fs::remove_dir_all(run().join(notes));
    }
    let others = std::fs::read_dir(run()).into_iter().flatten().flatten().any(|e| e.file_name() != "lock");
    if !others {
        let _ = std::fs::remove_dir_all(run());
    }
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

    fn sleeper() -> std::process::Child {
        std::process::Command::new("sleep").arg("60").spawn().unwrap()
    }

    #[test]
    fn two_homes_choose_two_subnets() {
        network::tests::apart(async || {
            let run = tempfile::tempdir().unwrap();
            let [first, second] = ["192.168.49.0/24", "192.168.58.0/24"].map(|net| net.parse().unwrap());
            let mut other = sleeper();
            let command = process::identify(other.id()).unwrap();
            commands::write(run.path(), &Note { command, network: commands::network(), subnet: first })
                .unwrap();
            assert!(!reserve_in(run.path(), first).await.unwrap(), "another home is about to use it");
            assert!(reserve_in(run.path(), second).await.unwrap());
            assert!(reserve_in(run.path(), second).await.unwrap(), "it is ours");
            other.kill().unwrap();
            other.wait().unwrap();
            assert!(reserve_in(run.path(), first).await.unwrap(), "it gave up");
            // In another network namespace it is another subnet.
            let command = process::identify(1).unwrap();
            commands::write(run.path(), &Note { command, network: 1, subnet: second }).unwrap();
            assert!(reserve_in(run.path(), second).await.unwrap());
        });
    }

    #[test]
    fn a_start_that_has_no_bridge_yet_is_a_user() {
        let command = process::identify(std::process::id()).unwrap();
        let note = Note { command, network: 7, subnet: "192.168.49.0/24".parse().unwrap() };
        let bridge = |name: &str| Link { index: 1, name: name.into(), controller: None, is_bridge: true };
        assert!(needs_forwarding(std::slice::from_ref(&note), 7, &[]));
        assert!(!needs_forwarding(&[note], 8, &[bridge("docker0")]));
        assert!(needs_forwarding(&[], 8, &[bridge("docker0"), bridge("mk-0123456789")]));
    }
}
