//! Nodes as they are to be, and what that changes. Pure.

use model::resources::HostSize;
use model::{Cluster, Fault, Node, Reason};

use crate::args::node_flags::Edit;
use crate::commands::start::versions;
use crate::core;

pub fn node(cluster: &Cluster, node: &Node, edit: &Edit, host: HostSize) -> Result<Node, Fault> {
    let version = edit.version.as_deref().map(versions::resolve).transpose()?;
    edit.apply(cluster, node, version.as_deref(), host)
}

/// The cluster with some of its nodes changed.
pub fn edited(cluster: &Cluster, names: &[Node], edit: &Edit, host: HostSize) -> Result<Cluster, Fault> {
    let mut after = cluster.clone();
    for changed in after.nodes.iter_mut().filter(|n| names.iter().any(|m| m.name == n.name)) {
        *changed = node(cluster, changed, edit, host)?;
    }
    core::base_images::keep(&mut after, cluster);
    Ok(after)
}

/// A line for each change, with what it takes. An error when something cannot become something else.
pub fn lines(before: &Cluster, after: &Cluster) -> Result<Vec<String>, Fault> {
    if let Err(fixed) = cluster_file::diff(before, after) {
        let all: Vec<String> = fixed.iter().map(ToString::to_string).collect();
        return Err(Fault::new(Reason::Usage, all.join("; ")));
    }
    Ok(core::changes(before, after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::start::desired::tests::sample;

    const HOST: HostSize = HostSize { cpus: 8, memory_mib: 16000 };

    #[test]
    fn only_the_nodes_that_are_named_change() {
        let mut cluster = sample("demo");
        for _ in 0..2 {
            cluster.nodes.push(cluster.next_node(None, false).unwrap());
        }
        let mut edit = Edit::default();
        edit.set.memory_mib = Some(1000);
        edit.set.mounts.push("/a:/b".parse().unwrap());
        let after = edited(&cluster, &cluster.nodes[1..2], &edit, HOST).unwrap();
        assert_eq!(after.nodes[1].config.memory_mib, Some(1000));
        assert_eq!((&after.nodes[0], &after.nodes[2]), (&cluster.nodes[0], &cluster.nodes[2]));
        let lines = lines(&cluster, &after).unwrap();
        assert!(lines.len() == 2 && lines.iter().all(|l| l.contains("demo-m02")), "{lines:?}");
        assert!(lines[0].ends_with("(live)") && lines[1].ends_with("(restart)"), "{lines:?}");
    }

    #[test]
    fn what_a_node_was_made_of_stays() {
        let cluster = sample("demo");
        let mut edit = Edit::default();
        edit.set.base_image = Some("mine".into());
        let after = edited(&cluster, &cluster.nodes, &edit, HOST).unwrap();
        let fault = lines(&cluster, &after).unwrap_err();
        assert!(fault.message.starts_with("baseImage of node demo cannot be changed"), "{fault}");
    }
}
