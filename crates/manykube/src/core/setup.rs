//! What a machine was last set up with, in a file beside it, so that a change of the configuration is
//! seen as one, by whichever command comes next.

use std::path::PathBuf;

use anyhow::Result;
use base::atomic;
use model::node_config::Setup;
use model::{Cluster, Home, Node};

fn path(home: &Home, machine: &str) -> PathBuf {
    home.machine(machine).join("setup.json")
}

/// `None` for a machine of an earlier manykube, and where a creation was cut short at its very end: such
/// a machine is what the configuration says.
pub fn recorded(home: &Home, machine: &str) -> Option<Setup> {
    serde_json::from_slice(&std::fs::read(path(home, machine)).ok()?).ok()
}

/// An emptied one would read as a machine that is as wanted.
fn record(home: &Home, machine: &str, setup: &Setup) -> Result<()> {
    let midway = || base::crash::place(&format!("setup/{machine}"), "midway");
    Ok(atomic::write_with(&path(home, machine), &serde_json::to_vec_pretty(setup)?, 0o644, midway)?)
}

/// The machine has what it should. What is in the API is not looked at.
pub fn made(home: &Home, cluster: &Cluster, node: &Node) -> Result<()> {
    let machine = cluster.machine(node);
    let before = recorded(home, &machine).unwrap_or_default().config;
    let mut setup = Setup::of(cluster, node);
    (setup.config.labels, setup.config.taints) = (before.labels, before.taints);
    record(home, &machine, &setup)
}

/// The Node object has what it should.
pub fn adopted(home: &Home, cluster: &Cluster, node: &Node) -> Result<()> {
    let machine = cluster.machine(node);
    let wanted = Setup::of(cluster, node);
    let mut setup = recorded(home, &machine).unwrap_or_else(|| wanted.clone());
    (setup.config.labels, setup.config.taints) = (wanted.config.labels, wanted.config.taints);
    record(home, &machine, &setup)
}

/// How far a machine is from what is wanted.
pub fn state(wanted: &Setup, recorded: Option<&Setup>) -> plan::Setup {
    let Some(recorded) = recorded else { return plan::Setup::AsWanted };
    let mut now = recorded.clone();
    (now.config.labels, now.config.taints) = (wanted.config.labels.clone(), wanted.config.taints.clone());
    let sized = now.same_size(wanted);
    (now.config.cpus, now.config.memory_mib) = (wanted.config.cpus, wanted.config.memory_mib);
    match (now.changes(wanted).is_empty(), sized) {
        (false, _) => plan::Setup::Other,
        (true, false) => plan::Setup::OtherSize,
        (true, true) => plan::Setup::AsWanted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_of_the_api_is_not_of_the_machine() {
        let wanted = Setup { kubernetes_version: "v1.37.1".into(), ..Setup::default() };
        let of = |edit: fn(&mut Setup)| {
            let mut old = wanted.clone();
            edit(&mut old);
            state(&wanted, Some(&old))
        };
        assert_eq!(of(|_| ()), plan::Setup::AsWanted);
        assert_eq!(of(|s| drop(s.config.labels.insert("a".into(), "b".into()))), plan::Setup::AsWanted);
        assert_eq!(of(|s| s.config.memory_mib = Some(1)), plan::Setup::OtherSize);
        assert_eq!(of(|s| s.kubernetes_version = "v1.36.0".into()), plan::Setup::Other);
        assert_eq!(of(|s| s.config.mounts = vec!["/a:/b".parse().unwrap()]), plan::Setup::Other);
        assert_eq!(state(&wanted, None), plan::Setup::AsWanted);
    }
}
