//! Nodes that a command is bringing up, by name, in a file of the profile: what it leaves when it dies.

use std::path::PathBuf;

use anyhow::Result;
use model::{Cluster, Home, Node};

use super::atomic;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pending {
    /// It was never up: the same `node add` again means this one and not yet another.
    Adding,
    /// It ran, and may be off because its change takes a restart: whoever finishes the change boots it.
    Changing,
}

fn path(home: &Home, profile: &str, what: Pending) -> PathBuf {
    let name = match what {
        Pending::Adding => "adding.json",
        Pending::Changing => "changing.json",
    };
    home.profile(profile).join(name)
}

fn read(home: &Home, profile: &str, what: Pending) -> Vec<String> {
    let text = std::fs::read(path(home, profile, what)).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

/// Those that an earlier command did not finish.
pub fn unfinished(home: &Home, cluster: &Cluster, what: Pending) -> Vec<Node> {
    let names = read(home, &cluster.name, what);
    cluster.nodes.iter().filter(|n| names.contains(&n.name)).cloned().collect()
}

/// To be called before the configuration says so.
pub fn begin(home: &Home, cluster: &Cluster, what: Pending, new: &[Node]) -> Result<()> {
    let mut names: Vec<String> = unfinished(home, cluster, what).into_iter().map(|n| n.name).collect();
    names.extend(new.iter().map(|n| n.name.clone()).filter(|name| !names.contains(name)).collect::<Vec<_>>());
    Ok(atomic::write(&path(home, &cluster.name, what), &serde_json::to_vec(&names)?, 0o600)?)
}

/// These are there, or gone.
pub fn end(home: &Home, profile: &str, done: impl Fn(&str) -> bool + Copy) -> Result<()> {
    [Pending::Adding, Pending::Changing].into_iter().try_for_each(|what| end_of(home, profile, what, done))
}

fn end_of(home: &Home, profile: &str, what: Pending, done: impl Fn(&str) -> bool) -> Result<()> {
    let names = read(home, profile, what);
    let left: Vec<&String> = names.iter().filter(|name| !done(name)).collect();
    if !left.is_empty() {
        return Ok(atomic::write(&path(home, profile, what), &serde_json::to_vec(&left)?, 0o600)?);
    }
    Ok(atomic::remove(&path(home, profile, what))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::start::desired::tests::sample;

    #[test]
    fn unfinished_until_they_are_there() {
        let dir = tempfile::tempdir().expect("a directory");
        let home = Home::new(dir.path(), None);
        let mut cluster = sample("demo");
        let names = |cluster: &Cluster| -> Vec<String> {
            unfinished(&home, cluster, Pending::Adding).into_iter().map(|n| n.name).collect()
        };
        let [two, three] = [2, 3].map(|_| {
            let node = cluster.next_node(None, false).expect("room");
            begin(&home, &cluster, Pending::Adding, std::slice::from_ref(&node)).expect("note it");
            assert!(!names(&cluster).contains(&node.name), "not in the configuration yet");
            cluster.nodes.push(node.clone());
            node.name
        });
        assert_eq!(names(&cluster), [two.clone(), three.clone()]);
        end(&home, "demo", |name| name == two).expect("one is there");
        assert_eq!(names(&cluster), [three]);
        end(&home, "demo", |_| true).expect("all are there");
        end(&home, "demo", |_| true).expect("again");
        assert!(names(&cluster).is_empty() && !path(&home, "demo", Pending::Adding).exists());
    }
}
