//! The nodes that are to come, as the flags ask. Pure, but for what the host has.

use model::{Cluster, Fault, Node, Reason, names};

use super::args::{AddArgs, CreateArgs, Join};
use super::change;
use crate::args::node_flags::{Edit, NodeFlags};
use crate::host;

/// More at once is a slip of the keyboard; the network ends at 252 anyway.
const MOST: u32 = 250;

#[derive(Debug, Clone)]
pub struct Request {
    pub name: Option<String>,
    pub control_plane: bool,
    pub worker: bool,
    pub count: u32,
    pub delete_on_failure: bool,
    pub join: Join,
    pub edit: Edit,
}

impl Request {
    pub fn add(args: &AddArgs) -> Result<Request, Fault> {
        Ok(Request {
            control_plane: args.control_plane,
            worker: args.worker,
            count: args.count,
            delete_on_failure: args.delete_on_failure,
            join: args.join,
            ..Request::one(args.name.get()?, &args.flags)?
        })
    }

    pub fn create(args: &CreateArgs) -> Result<Request, Fault> {
        Request::one(args.name.get()?, &args.flags)
    }

    /// One worker.
    pub fn one(name: Option<&str>, flags: &NodeFlags) -> Result<Request, Fault> {
        let name = name.map(str::to_owned);
        let edit = flags.edit(host::size())?;
        Ok(Request {
            name,
            control_plane: false,
            worker: true,
            count: 1,
            delete_on_failure: false,
            join: Join::Direct,
            edit,
        })
    }

    /// Nodes that are not in the cluster yet; or, when this very request was cut short, those of it.
    pub fn nodes(&self, cluster: &Cluster, unfinished: &[Node]) -> Result<Vec<Node>, Fault> {
        if let Some(again) = self.again(cluster, unfinished)? {
            return Ok(again);
        }
        self.check(cluster)?;
        let name = self.name.as_deref();
        let full = || {
            let (net, more) =
                (&cluster.network, if self.count == 1 { "1 more node" } else { "so many more nodes" });
            let ranges = format!("nodes are in {}, and each needs a /24 of {}", net.subnet, net.pod_cidr);
            usage(format!("The cluster {:?} has no room for {more}: {ranges}", cluster.name))
        };
        let mut grown = cluster.clone();
        let mut new = Vec::new();
        for _ in 0..self.count {
            let node = grown.next_node(name, self.control_plane).ok_or_else(full)?;
            let node = change::node(cluster, &node, &self.edit, host::size())?;
            grown.nodes.push(node.clone());
            new.push(node);
        }
        Ok(new)
    }

    fn again(&self, cluster: &Cluster, unfinished: &[Node]) -> Result<Option<Vec<Node>>, Fault> {
        let named = |n: &&Node| {
            n.control_plane == self.control_plane && self.name.as_ref().is_none_or(|name| *name == n.name)
        };
        let mut found = Vec::new();
        for node in unfinished.iter().filter(named) {
            let version = cluster.kubernetes_version.clone();
            let plain =
                Node { config: model::NodeConfig::default(), kubernetes_version: version, ..node.clone() };
            if change::node(cluster, &plain, &self.edit, host::size())? == *node {
                found.push(node.clone());
            }
        }
        Ok((found.len() == self.count as usize && !found.is_empty()).then_some(found))
    }

    fn check(&self, cluster: &Cluster) -> Result<(), Fault> {
        if !self.worker && !self.control_plane {
            return Err(usage("A node that is neither a worker nor a control plane would do nothing"));
        }
        if !(1..=MOST).contains(&self.count) {
            return Err(usage(format!("--count must be between 1 and {MOST}")));
        }
        let Some(name) = &self.name else { return Ok(()) };
        if self.count > 1 {
            return Err(usage(format!("{} nodes cannot all be named {name}", self.count)));
        }
        if !names::is_valid_node(name) {
            return Err(usage(format!(
                "{name:?} is no name for a node: lower-case letters, digits and dashes, and not m01"
            )));
        }
        if cluster.find_node(name).is_some() {
            return Err(usage(format!("The cluster {:?} has a node {name} already", cluster.name)));
        }
        Ok(())
    }
}

fn usage(message: impl Into<String>) -> Fault {
    Fault::new(Reason::Usage, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::start::desired::tests::sample;

    fn request(name: Option<&str>, count: u32) -> Request {
        Request { count, ..Request::one(name, &NodeFlags::default()).unwrap() }
    }

    #[test]
    fn each_has_what_was_asked_for() {
        let mut three = request(None, 3);
        three.edit.set.labels.insert("a".into(), "b".into());
        let nodes = three.nodes(&sample("demo"), &[]).unwrap();
        let names: Vec<&str> = nodes.iter().map(|n| n.name.as_str()).collect();
        assert_eq!(names, ["m02", "m03", "m04"]);
        assert!(nodes.iter().all(|n| n.config.labels.contains_key("a") && !n.control_plane));
        let mut older = request(Some("old"), 1);
        older.edit.version = Some("banana".into());
        assert_eq!(older.nodes(&sample("demo"), &[]).unwrap_err().reason, Reason::Usage);
    }

    #[test]
    fn the_same_again_means_the_same_nodes() {
        let mut cluster = sample("demo");
        let mut asked = request(None, 2);
        asked.edit.set.labels.insert("a".into(), "b".into());
        let new = asked.nodes(&cluster, &[]).unwrap();
        cluster.nodes.extend(new.clone());
        assert_eq!(asked.nodes(&cluster, &new).unwrap(), new);
        let one = Request { count: 1, ..asked.clone() };
        assert_eq!(one.nodes(&cluster, &new).unwrap()[0].name, "m04", "another request");
        let plain = Request { edit: Edit::default(), ..asked };
        assert_eq!(plain.nodes(&cluster, &new).unwrap()[0].name, "m04", "other options");
        let named = Request { name: Some("m02".into()), ..one };
        assert_eq!(named.nodes(&cluster, &new).unwrap(), new[..1]);
        assert!(named.nodes(&cluster, &[]).is_err(), "it is there");
    }

    #[test]
    fn no_node_without_a_range_for_its_pods() {
        let mut cluster = sample("demo");
        cluster.network.pod_cidr = "10.9.0.0/23".parse().unwrap();
        assert_eq!(request(None, 1).nodes(&cluster, &[]).unwrap().len(), 1);
        let refused = request(None, 2).nodes(&cluster, &[]).unwrap_err();
        assert_eq!(refused.reason, Reason::Usage);
        assert!(refused.message.contains("each needs a /24 of 10.9.0.0/23"), "{}", refused.message);
    }

    #[test]
    fn refusals() {
        let cluster = sample("demo");
        for bad in [
            request(Some("m01"), 1),
            request(Some("demo"), 1),
            request(Some("Upper"), 1),
            request(Some("w"), 2),
            request(None, 0),
            request(None, 251),
            Request { worker: false, ..request(None, 1) },
        ] {
            assert_eq!(bad.nodes(&cluster, &[]).unwrap_err().reason, Reason::Usage, "{bad:?}");
        }
    }
}
