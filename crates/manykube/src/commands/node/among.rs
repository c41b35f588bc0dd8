//! Which nodes a command is about: `node` means all, `worker` those that are no control planes.

use model::{Cluster, Fault, Node, Reason};

use crate::commands::cluster as common;
use crate::ctx::Ctx;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Among {
    All,
    Workers,
}

impl Among {
    /// The command, and what it calls its nodes.
    pub fn noun(self) -> &'static str {
        match self {
            Among::All => "node",
            Among::Workers => "worker",
        }
    }

    pub fn of(self, cluster: &Cluster) -> Vec<Node> {
        cluster.nodes.iter().filter(|n| self == Among::All || !n.control_plane).cloned().collect()
    }

    pub fn find(self, ctx: &Ctx, cluster: &Cluster, name: &str, reason: Reason) -> Result<Node, Fault> {
        let node = common::node(cluster, Some(name)).map_err(|fault| Fault { reason, ..fault })?;
        if self == Among::Workers && node.control_plane {
            let message = format!("{name} is a control plane, not a worker");
            return Err(Fault::new(Reason::Usage, message)
                .advice(format!("Use '{}', which is for all nodes", ctx.hint("node"))));
        }
        Ok(node.clone())
    }
}
