//! What `start` says about nodes that are there: they keep what they have. Pure.

use std::collections::BTreeMap;

use model::resources::{self, HostSize};
use model::{Cluster, Fault, NodeConfig};

use super::{Args, checks};

/// A line for every part of the nodes that the flags ask to be different.
pub fn warnings(old: &Cluster, args: &Args, host: HostSize) -> Result<Vec<String>, Fault> {
    let mut asked = checks::node_defaults(args)?;
    if let Some(text) = &args.memory {
        asked.memory_mib = Some(resources::parse_memory(text)?.or_all(host.memory_mib));
    }
    if let Some(text) = &args.cpus {
        asked.cpus = Some(resources::parse_cpus(text)?.or_all(host.cpus));
    }
    asked.disk_mib = args.disk_size.as_deref().map(resources::parse_disk).transpose()?;
    let mut have = old.node_defaults.clone();
    (have.cpus, have.memory_mib, have.disk_mib) = (Some(old.cpus), Some(old.memory_mib), Some(old.disk_mib));
    have.container_runtime.get_or_insert_with(|| "containerd".to_owned());
    let line = |what: &str| {
        format!(
            "You cannot change {what} for an existing cluster with start. Please use 'node set', \
             or a file with 'start -f', or first delete the cluster."
        )
    };
    Ok(differences(&have, &asked).into_iter().map(line).collect())
}

/// What is asked for and not there.
fn differences(have: &NodeConfig, asked: &NodeConfig) -> Vec<&'static str> {
    let flags = asked
        .extra_config
        .iter()
        .all(|(component, flags)| have.extra_config.get(component).is_some_and(|have| part_of(flags, have)));
    let found = [
        ("the memory size", said(&asked.memory_mib, &have.memory_mib)),
        ("the CPUs", said(&asked.cpus, &have.cpus)),
        ("the disk size", said(&asked.disk_mib, &have.disk_mib)),
        ("the container runtime", said(&asked.container_runtime, &have.container_runtime)),
        ("the base image", other_image(asked, have)),
        ("flags of components (--extra-config)", !flags),
        ("the feature gates", !part_of(&asked.feature_gates, &have.feature_gates)),
        ("the labels of nodes", !part_of(&asked.labels, &have.labels)),
        ("the taints of nodes", asked.taints.iter().any(|t| !have.taints.contains(t))),
        ("the mounts", asked.mounts.iter().any(|m| !have.mounts.contains(m))),
        ("the ports", asked.ports.iter().any(|p| !have.ports.contains(p))),
        ("the binaries", !part_of(&asked.binaries, &have.binaries)),
    ];
    found.into_iter().filter(|(_, differs)| *differs).map(|(what, _)| what).collect()
}

fn said<T: PartialEq>(asked: &Option<T>, have: &Option<T>) -> bool {
    asked.is_some() && asked != have
}

/// What was pulled is remembered with its digest.
fn other_image(asked: &NodeConfig, have: &NodeConfig) -> bool {
    let Some(asked) = &asked.base_image else { return false };
    !have.base_image.as_ref().is_some_and(|have| image::registry::Pinned::came_from(have, asked))
}

fn part_of<K: Ord, V: PartialEq>(asked: &BTreeMap<K, V>, have: &BTreeMap<K, V>) -> bool {
    asked.iter().all(|(key, value)| have.get(key) == Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::start::desired::tests::{args, sample};

    #[test]
    fn only_what_differs_is_named() {
        let host = HostSize { cpus: 8, memory_mib: 16000 };
        let mut old = sample("demo");
        let all = "--labels=a=b,c=d --taints=x:NoExecute --extra-config=kubelet.v=4 --feature-gates=A=true \
                   --mount=/x:/y --ports=80:80 --kubelet-binary=/k --base-image=mine";
        assert_eq!(warnings(&old, &args(all), host).unwrap().len(), 8);
        old.node_defaults = checks::node_defaults(&args(all)).unwrap();
        old.node_defaults.base_image = Some("mine@sha256:ab".into());
        for same in [all, "", "--labels=c=d", "-c containerd", "--memory=4000 --cpus=2 --disk-size=20000mb"] {
            assert!(warnings(&old, &args(same), host).unwrap().is_empty(), "{same}");
        }
        for (line, what) in [
            ("--labels=a=x", "the labels"),
            ("--extra-config=kubelet.v=5", "--extra-config"),
            ("--memory=8g", "the memory size"),
            ("--ports=80:81", "the ports"),
        ] {
            let got = warnings(&old, &args(line), host).unwrap();
            assert!(got.len() == 1 && got[0].contains(what) && got[0].contains("node set"), "{got:?}");
        }
    }
}
