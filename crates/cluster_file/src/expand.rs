//! From groups to nodes with names.

use std::collections::HashSet;

use model::names;

use crate::file::{ClusterFile, NodeGroup, Role};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expanded {
    /// The index of its group; `None` for the node of a file that lists none.
    pub group: Option<usize>,
    pub name: String,
    pub control_plane: bool,
}

/// All nodes, control planes first, as `start --nodes` orders them. Those without a name get minikube's:
/// the first control plane none, the others `m02`, `m03`, … as far as these are free.
pub fn expand(file: &ClusterFile) -> Vec<Expanded> {
    if file.nodes.is_empty() {
        return vec![Expanded { group: None, name: String::new(), control_plane: true }];
    }
    let mut nodes: Vec<(Expanded, bool)> = Vec::new();
    for (index, group) in file.nodes.iter().enumerate() {
        for number in 1..=group.count.unwrap_or(1) {
            let name = given(group, number);
            let control_plane = group.role == Role::ControlPlane;
            let unnamed = name.is_none();
            nodes.push((
                Expanded { group: Some(index), name: name.unwrap_or_default(), control_plane },
                unnamed,
            ));
        }
    }
    nodes.sort_by_key(|(node, _)| !node.control_plane);
    let taken: HashSet<String> = nodes.iter().map(|(node, _)| node.name.clone()).collect();
    let mut free = (2..).map(names::node).filter(|name| !taken.contains(name));
    let mut first = true;
    for (node, _) in nodes.iter_mut().filter(|(_, unnamed)| *unnamed) {
        if first && node.control_plane {
            first = false;
        } else {
            node.name = free.next().unwrap_or_default();
        }
    }
    nodes.into_iter().map(|(node, _)| node).collect()
}

fn given(group: &NodeGroup, number: u32) -> Option<String> {
    match (&group.name, &group.name_prefix) {
        (Some(name), _) => Some(name.clone()),
        (None, Some(prefix)) => Some(format!("{prefix}{number}")),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(role: Role, count: u32, name: Option<&str>, prefix: Option<&str>) -> NodeGroup {
        NodeGroup {
            role,
            count: Some(count),
            name: name.map(Into::into),
            name_prefix: prefix.map(Into::into),
            ..NodeGroup::default()
        }
    }

    fn names(groups: Vec<NodeGroup>) -> Vec<String> {
        expand(&ClusterFile { nodes: groups, ..ClusterFile::default() }).into_iter().map(|n| n.name).collect()
    }

    #[test]
    fn names_of_nodes() {
        use Role::{ControlPlane, Worker};
        assert_eq!(names(vec![]), [""]);
        assert_eq!(
            names(vec![group(Worker, 2, None, None), group(ControlPlane, 3, None, None)]),
            ["", "m02", "m03", "m04", "m05"]
        );
        assert_eq!(
            names(vec![
                group(ControlPlane, 1, None, None),
                group(Worker, 2, None, Some("gpu-")),
                group(Worker, 1, None, None)
            ]),
            ["", "gpu-1", "gpu-2", "m02"]
        );
        // A name that somebody took is not given again.
        assert_eq!(
            names(vec![group(ControlPlane, 2, None, None), group(Worker, 1, Some("m02"), None)]),
            ["", "m03", "m02"]
        );
        // The first node may have a name; then none is without.
        assert_eq!(
            names(vec![group(ControlPlane, 1, Some("cp"), None), group(Worker, 1, None, None)]),
            ["cp", "m02"]
        );
    }
}
