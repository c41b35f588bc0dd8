//! What flags ask of a node: to have something, and to have something no more.

use model::resources::{self, HostSize};
use model::{Cluster, Fault, Node, NodeConfig, Reason};

use super::remove::Remove;
use super::{ConfigFlags, NodeFlags, parse, runtime};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Edit {
    pub set: NodeConfig,
    pub remove: Remove,
    /// As asked: `1.36`, `stable`.
    pub version: Option<String>,
}

impl ConfigFlags {
    /// For a new cluster, whose nodes have nothing yet that could be removed.
    pub fn defaults(&self, container_runtime: Option<&str>) -> Result<NodeConfig, Fault> {
        runtime::check(self)?;
        let Edit { mut set, remove, .. } = parse::parse(self)?;
        if let Some(what) = remove.first() {
            let message = format!("{what}- removes something, and a new cluster has nothing to remove");
            return Err(Fault::new(Reason::Usage, message));
        }
        set.container_runtime = runtime(container_runtime)?;
        Ok(set)
    }

    /// minikube's `--mount` without a word on what.
    pub fn mounts_nothing(&self) -> bool {
        self.mount_string.as_deref().unwrap_or_default().is_empty() && parse::is_on(&self.mount)
    }
}

impl NodeFlags {
    pub fn edit(&self, host: HostSize) -> Result<Edit, Fault> {
        runtime::check(&self.config)?;
        let mut edit = parse::parse(&self.config)?;
        let set = &mut edit.set;
        set.container_runtime = runtime(self.container_runtime.as_deref())?;
        if let Some(text) = &self.cpus {
            set.cpus = Some(resources::parse_cpus(text)?.or_all(host.cpus));
        }
        if let Some(text) = &self.memory {
            set.memory_mib = Some(resources::parse_memory(text)?.or_all(host.memory_mib));
        }
        if let Some(text) = &self.disk_size {
            set.disk_mib = Some(resources::parse_disk(text)?);
        }
        edit.version = self.kubernetes_version.clone().filter(|v| !v.is_empty());
        Ok(edit)
    }
}

impl Edit {
    pub fn is_empty(&self) -> bool {
        *self == Edit::default()
    }

    /// The node as it is to be. `version` is the one that was asked for, found out by the caller.
    pub fn apply(
        &self,
        cluster: &Cluster,
        node: &Node,
        version: Option<&str>,
        host: HostSize,
    ) -> Result<Node, Fault> {
        let machine = cluster.machine(node);
        let usage = |why: String| Fault::new(Reason::Usage, why);
        resources::check_node(&self.set, node.control_plane, host)?;
        if !node.control_plane {
            worker_parts(&self.set).map_err(|why| usage(format!("{machine} is a worker: {why}")))?;
        }
        let bare = Node { config: NodeConfig::default(), ..node.clone() };
        let kept = self.remove.from(&node.config, &cluster.config_of(&bare)).map_err(|why| {
            usage(format!("{machine} {why}"))
                .advice("Nothing was changed; see 'config export' for what it has")
        })?;
        let mut new = node.clone();
        new.config = self.added_to(&kept).over(&kept);
        if let Some(version) = version {
            version.clone_into(&mut new.kubernetes_version);
        }
        Ok(new)
    }

    /// Without entries of lists that are there already: to ask for them again is no change, not even of
    /// their order.
    fn added_to(&self, own: &NodeConfig) -> NodeConfig {
        let mut set = self.set.clone();
        set.taints.retain(|t| !own.taints.contains(t));
        set.mounts.retain(|m| !own.mounts.contains(m));
        set.ports.retain(|p| !own.ports.contains(p));
        set
    }
}

/// A worker inherits what only control planes use, but to ask for it is a mistake.
fn worker_parts(set: &NodeConfig) -> Result<(), String> {
    let flags = set.extra_config.keys().filter(|c| !c.on_workers()).map(|c| c.as_str());
    let binaries = set.binaries.keys().filter(|b| !b.on_workers()).map(|b| b.as_str());
    flags.chain(binaries).next().map_or(Ok(()), |part| Err(format!("a worker runs no {part}")))
}

#[cfg(test)]
#[path = "edit_tests.rs"]
mod tests;
