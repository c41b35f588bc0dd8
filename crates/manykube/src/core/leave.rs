//! One node leaves, for a while or for good.

use std::time::{Duration, Instant};

use anyhow::Result;
use model::{Cluster, Fault, Node, Reason};
use plan::{Leave, Observed, Plan, Refusal};

use super::etcd::Etcd;
use super::steps::Runner;
use super::{TAKE_DOWN, look, membership};
use crate::ctx::Ctx;

/// How long a member of etcd that is to stay may take to say that it is well.
const TO_BE_WELL: Duration = Duration::from_secs(10);
const ASK_AGAIN: Duration = Duration::from_millis(300);

/// The caller holds the lock; when it is gone for good the caller takes it from the
/// configuration afterwards, so that a deletion which was cut short can be done again.
pub async fn leave(ctx: &Ctx, cluster: &Cluster, node: &Node, how: Leave, force: bool) -> Result<()> {
    let driver = super::driver(ctx, cluster.driver);
    let machine = cluster.machine(node);
    let mut leaving = membership::left(&ctx.home, cluster);
    leaving.push(machine.clone());
    let observed = look::observe(&ctx.home, cluster, &driver, &leaving).await?;
    let etcd = Etcd { home: &ctx.home, cluster, driver: &driver, without: &machine };
    let plan = plan(&etcd, node, &observed, how, force).await;
    let plan = plan.map_err(|refusal| refused(ctx, &machine, refusal))?;
    let mut after = cluster.clone();
    if how == Leave::Delete {
        after.nodes.retain(|n| n.name != node.name);
    }
    let runner = Runner { departing: Some(node), leaving, ..Runner::new(ctx, &after, &driver, TAKE_DOWN) };
    super::run(&runner, &plan).await?;
    // Of one that had no machine any more, too.
    if how == Leave::Delete { membership::clear(&ctx.home, &cluster.name, &machine) } else { Ok(()) }
}

/// A member that has just come needs a moment until it answers for itself.
async fn plan(
    etcd: &Etcd<'_>,
    node: &Node,
    observed: &Observed,
    how: Leave,
    force: bool,
) -> Result<Plan, Refusal> {
    let began = Instant::now();
    loop {
        let members = match node.control_plane {
            true => etcd.with_health().await.inspect_err(|e| tracing::warn!("{e:#}")).ok(),
            false => None,
        };
        match plan::leave(etcd.cluster, observed, etcd.without, members.as_deref(), how, force) {
            Err(Refusal::NoQuorum | Refusal::WouldLoseQuorum { .. })
                if members.is_some() && began.elapsed() < TO_BE_WELL => {}
            planned => return planned,
        }
        tokio::time::sleep(ASK_AGAIN).await;
    }
}

fn refused(ctx: &Ctx, machine: &str, refusal: Refusal) -> Fault {
    let fault = Fault::new(Reason::NodeDelete, format!("{machine} cannot leave the cluster: {refusal}"));
    match refusal {
        Refusal::Last => fault.advice(format!(
            "Add another control plane first, or use '{}' or '{}' for the whole cluster",
            ctx.hint("stop"),
            ctx.hint("delete")
        )),
        Refusal::NoQuorum | Refusal::WouldLoseQuorum { .. } => fault.advice(format!(
            "Start the other control planes with '{start}'. If their data is lost, '{start} --recover-from' makes a new \
             etcd from what is left",
            start = ctx.hint("start")
        )),
    }
}
