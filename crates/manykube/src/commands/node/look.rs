//! What only looks at nodes.

use anyhow::Result;
use model::{Cluster, Reason};

use super::args::StatusArgs;
use super::{Among, common};
use crate::commands::{print, status};
use crate::core;
use crate::ctx::Ctx;

/// minikube's two columns for all nodes; workers with their state as well.
pub fn list(ctx: &Ctx, among: Among) -> Result<()> {
    let cluster = common::load(ctx)?;
    let states: Vec<&'static str> = match among {
        Among::All => Vec::new(),
        Among::Workers => ctx.run(core::observe(ctx, &cluster))?.iter().map(|s| s.host.as_str()).collect(),
    };
    print(&lines(&cluster, among, &states));
    Ok(())
}

fn lines(cluster: &Cluster, among: Among, states: &[&'static str]) -> String {
    let mine = among.of(cluster);
    let nodes = cluster.nodes.iter().enumerate().filter(|(_, n)| mine.contains(n));
    let state = |i: usize| states.get(i).map(|s| format!("\t{s}")).unwrap_or_default();
    nodes.map(|(i, n)| format!("{}\t{}{}\n", cluster.machine(n), n.ip, state(i))).collect()
}

pub fn status(ctx: &Ctx, args: &StatusArgs, among: Among) -> Result<u8> {
    let which = match (args.name.get()?, among) {
        (Some(name), _) => {
            among.find(ctx, &common::load(ctx)?, name, Reason::NodeRetrieve)?;
            status::Which::Node(name.to_owned())
        }
        (None, Among::All) => status::Which::All,
        (None, Among::Workers) => status::Which::Workers,
    };
    status::report(ctx, &args.view, &which)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::start::desired::tests::sample;

    #[test]
    fn workers_have_their_state() {
        let mut cluster = sample("demo");
        cluster.nodes.push(cluster.next_node(None, false).unwrap());
        assert_eq!(lines(&cluster, Among::All, &[]), "demo\t192.168.49.2\ndemo-m02\t192.168.49.3\n");
        let states = ["Running", "Stopped"];
        assert_eq!(lines(&cluster, Among::Workers, &states), "demo-m02\t192.168.49.3\tStopped\n");
    }
}
