//! A new etcd from the data of one control plane, when its majority is lost for good.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use bootstrap::etcd::{self, Progress};
use drivers::{Driver, Io};
use model::{Cluster, Fault, Home, Reason};
use plan::{Api, MachineState, Observed};
use tokio::time::sleep;

use super::steps::Runner;
use super::{StartOpts, driver, look, run};
use crate::ctx::Ctx;
use crate::report::{Event, Style};
use crate::state::atomic;

/// What `--recover-from` means without a name.
pub const FRESHEST: &str = "auto";
/// For an etcd that has nothing to do but to read its disk.
const ANSWER: Duration = Duration::from_secs(60);
const AGAIN: Duration = Duration::from_millis(300);

/// Names the machine while a recovery is under way: until it is done, `start` carries on with it.
fn mark(home: &Home, profile: &str) -> PathBuf {
    home.profile(profile).join("recovering")
}

/// One that was cut short.
pub fn unfinished(home: &Home, profile: &str) -> Option<String> {
    std::fs::read_to_string(mark(home, profile)).ok().filter(|m| !m.is_empty())
}

/// `asked` is a node's name or [`FRESHEST`].
pub async fn recover(ctx: &Ctx, cluster: &Cluster, asked: &str, opts: &StartOpts) -> Result<()> {
    let driver = driver(ctx, cluster.driver);
    let observed = look::observe(&ctx.home, cluster, &*driver).await?;
    let begun = unfinished(&ctx.home, &cluster.name);
    if begun.is_none() && observed.nodes.values().any(|n| n.api == Api::Ready) {
        return Err(Fault::new(
            Reason::Usage,
            "etcd has a majority of its members: there is nothing to recover",
        )
        .advice(format!("Run '{}' without --recover-from", ctx.hint("start")))
        .into());
    }
    let runner = Runner::new(ctx, cluster, &*driver, opts.wait_timeout);
    let from = match begun {
        Some(machine) if asked == FRESHEST => machine,
        _ => choose(&runner, cluster, &observed, asked).await?,
    };
    let message = format!("Making a new etcd from the data of {from}; what only the others knew is lost");
    ctx.emit(Event::info(Style::Notice, message));
    atomic::write(&mark(&ctx.home, &cluster.name), from.as_bytes(), 0o600)?;
    let observed = look::observe(&ctx.home, cluster, &*driver).await?;
    run(&runner, &plan::recover(cluster, &observed, &from)).await?;
    Ok(fs_err::remove_file(mark(&ctx.home, &cluster.name))?)
}

/// Control planes that still have etcd's data.
fn survivors(cluster: &Cluster, observed: &Observed) -> Vec<String> {
    let has = |m: &String| {
        observed.nodes.get(m).is_some_and(|n| n.machine != MachineState::Absent && !n.outside && !n.bereft)
    };
    cluster.control_planes().map(|n| cluster.machine(n)).filter(has).collect()
}

async fn choose(runner: &Runner<'_>, cluster: &Cluster, observed: &Observed, asked: &str) -> Result<String> {
    let survivors = survivors(cluster, observed);
    let nobody = |message: String| {
        let advice = match survivors.as_slice() {
            [] => format!(
                "No control plane has etcd's data any more: '{}' and begin anew",
                runner.ctx.hint("delete")
            ),
            some => format!("etcd's data is there on: {}", some.join(", ")),
        };
        Fault::new(Reason::NodeRetrieve, message).advice(advice)
    };
    if asked != FRESHEST {
        let node = cluster.find_node(asked).map(|n| cluster.machine(n));
        return match node.filter(|m| survivors.contains(m)) {
            Some(machine) => Ok(machine),
            None => Err(nobody(format!("{asked} has no data of etcd to recover from")).into()),
        };
    }
    match survivors.as_slice() {
        [] => Err(nobody("etcd's data is gone on all control planes".to_owned()).into()),
        [one] => Ok(one.clone()),
        several => freshest(runner, several).await,
    }
}

/// They are asked themselves, because what is on a disk is only known to the etcd that reads it.
async fn freshest(runner: &Runner<'_>, machines: &[String]) -> Result<String> {
    runner.network_up().await?;
    let mut best: Option<(Progress, &String)> = None;
    for machine in machines {
        runner.boot(machine).await?;
        let progress = progress(runner, machine).await?;
        tracing::info!("etcd of {machine} is at {progress:?}");
        if best.is_none_or(|(known, _)| progress > known) {
            best = Some((progress, machine));
        }
    }
    match best {
        Some((_, machine)) => Ok(machine.clone()),
        None => bail!("no control plane to choose from"),
    }
}

async fn progress(runner: &Runner<'_>, machine: &str) -> Result<Progress> {
    let began = Instant::now();
    loop {
        match runner
            .in_node(machine, &etcd::status_command())
            .await
            .and_then(|said| etcd::parse_progress(&said))
        {
            Err(e) if began.elapsed() < ANSWER => tracing::debug!("not yet: {e:#}"),
            result => return result,
        }
        sleep(AGAIN).await;
    }
}

/// Members of etcd by the word of one of them, when too few have data left to ever agree again.
pub async fn lost_for_good(
    home: &Home,
    cluster: &Cluster,
    driver: &dyn Driver,
    machine: &str,
) -> Option<Lost> {
    let said =
        driver.run(machine, &etcd::own_list_command(), Io::Captured { stdin: Vec::new() }).await.ok()?;
    let members = etcd::parse(&String::from_utf8_lossy(&said.stdout)).ok()?;
    let voters: Vec<_> = members.iter().filter(|m| !m.learner).collect();
    let has_data = |m: &String| look::has_etcd_data(home, m) && !look::outside_file(home, m).exists();
    let machine_of = |m: &etcd::Member| {
        let node = cluster.nodes.iter().find(|n| m.peers.contains(&etcd::peer_url(n.ip)));
        node.map_or_else(|| m.name.clone(), |n| cluster.machine(n))
    };
    let left: Vec<String> = voters.iter().map(|m| machine_of(m)).filter(has_data).collect();
    (left.len() <= voters.len() / 2).then_some(Lost { members: voters.len(), left })
}

pub struct Lost {
    members: usize,
    left: Vec<String>,
}

impl Lost {
    pub fn fault(&self, ctx: &Ctx) -> Fault {
        let (members, left) = (self.members, self.left.join(", "));
        let message = format!(
            "etcd has lost its majority for good: of its {members} members only {left} still has its data, \
             and {} would be needed",
            members / 2 + 1
        );
        Fault::new(Reason::GuestStart, message).advice(format!(
            "Run '{} --recover-from' to make a new etcd from what is left and to join the others again; \
             what only the others knew is lost",
            ctx.hint("start")
        ))
    }
}

impl Runner<'_> {
    /// The machine's disk stays, for whoever wants to look at it before the next step removes it.
    pub(super) fn forsake(&self, machine: &str) -> Result<()> {
        Ok(fs_err::write(look::outside_file(self.home(), machine), "")?)
    }

    /// Once with the flag, until there is one member; then the flag goes while the machine is off, so that
    /// there is never an etcd with members that would throw them out at its next start.
    pub(super) async fn recover_etcd(&self, machine: &str) -> Result<()> {
        self.force(machine, true)?;
        self.boot(machine).await?;
        let began = Instant::now();
        loop {
            let members =
                self.in_node(machine, &etcd::list_command()).await.and_then(|said| etcd::parse(&said));
            match members {
                Ok(members) if members.len() == 1 => break,
                Err(e) if began.elapsed() > ANSWER => return Err(e),
                other => tracing::debug!("not yet: {other:?}"),
            }
            sleep(AGAIN).await;
        }
        self.driver.power_off(machine, super::steps::GRACE).await?;
        self.force(machine, false)
    }

    fn force(&self, machine: &str, force: bool) -> Result<()> {
        let path = format!("{}/etcd.yaml", bootstrap::paths::MANIFESTS);
        let Some(text) = drivers::machine::read_file(self.home(), machine, &path) else {
            bail!("{machine} has no manifest of etcd");
        };
        let text = etcd::forced(&String::from_utf8_lossy(&text), force);
        let file = model::node_spec::NodeFile::new(path, 0o600, text);
        drivers::machine::write_file(self.home(), machine, &file)
    }
}

/// Of a cluster that was set up, when no control plane has its data any more.
pub fn all_is_lost(ctx: &Ctx, cluster: &Cluster, observed: &Observed) -> Option<Fault> {
    let bereft = observed.nodes.values().any(|n| n.bereft);
    (observed.configured && bereft && survivors(cluster, observed).is_empty()).then(|| {
        Fault::new(
            Reason::GuestStart,
            "etcd's data is gone on all control planes: the cluster cannot be repaired",
        )
        .advice(format!("Run '{}', then start it anew", ctx.hint("delete")))
    })
}
