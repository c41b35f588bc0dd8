//! A new etcd from the data of one control plane, when its majority is lost for good.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use bootstrap::{Pki, etcd};
use futures::future::join_all;
use model::{Cluster, Fault, Home, Node, Reason};
use plan::{Api, Observed};
use tokio::time::sleep;

use super::channel::Machines;
use super::membership::{self, Note};
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
    let observed = look::observe(&ctx.home, cluster, &driver, &[]).await?;
    let copies = Copies::find(&ctx.home, cluster, &driver, &observed).await;
    let begun = unfinished(&ctx.home, &cluster.name);
    if begun.is_none() && !opts.force {
        copies.needed(ctx, &observed)?;
    }
    let runner = Runner::new(ctx, cluster, &driver, opts.wait_timeout);
    let from = match begun {
        Some(machine) if asked == FRESHEST => machine,
        _ => copies.choose(&runner, cluster, asked).await?,
    };
    let message = format!("Making a new etcd from the data of {from}; what only the others knew is lost");
    ctx.emit(Event::info(Style::Notice, message));
    atomic::write(&mark(&ctx.home, &cluster.name), from.as_bytes(), 0o600)?;
    let observed = look::observe(&ctx.home, cluster, &driver, &[]).await?;
    let recovered = run(&runner, &plan::recover(cluster, &observed, &from)).await;
    recovered.map_err(|why| copies.another(ctx, &from, why))?;
    Ok(atomic::remove(&mark(&ctx.home, &cluster.name))?)
}

/// Where etcd's data is.
struct Copies {
    /// Control planes that are members of etcd, as far as is known here.
    members: usize,
    /// Those of them that have their data.
    whole: Vec<String>,
    /// Copies that an earlier recovery did not take.
    replaced: Vec<String>,
}

impl Copies {
    async fn find(home: &Home, cluster: &Cluster, driver: &Machines, observed: &Observed) -> Copies {
        let planes: Vec<String> = cluster.control_planes().map(|n| cluster.machine(n)).collect();
        let note = |m: &String| membership::read(home, &cluster.name, m);
        let there = planes.iter().filter(|m| observed.nodes.contains_key(*m));
        let with_data = with_data(home, driver, there.cloned()).await;
        let has_data = |m: &String| with_data.contains(m);
        let of = |replaced: bool| {
            let is = |m: &&String| match note(m) {
                Some(Note::Replaced) => replaced,
                Some(Note::Left) => false,
                _ => !replaced,
            };
            planes.iter().filter(is).cloned().collect::<Vec<_>>()
        };
        let members = of(false);
        Copies {
            members: members.len(),
            whole: members.into_iter().filter(has_data).collect(),
            replaced: of(true).into_iter().filter(has_data).collect(),
        }
    }

    fn all(&self) -> impl Iterator<Item = &String> {
        self.whole.iter().chain(&self.replaced)
    }

    /// An error where plain `start` would do.
    fn needed(&self, ctx: &Ctx, observed: &Observed) -> Result<(), Fault> {
        let serves = observed.nodes.values().any(|n| n.api == Api::Ready);
        if !serves && self.whole.len() * 2 <= self.members {
            return Ok(());
        }
        let message = if serves {
            "etcd has a majority of its members: there is nothing to recover".to_owned()
        } else {
            let (whole, members) = (self.whole.len(), self.members);
            format!(
                "etcd's data is there on {whole} of {members} control planes, a majority: there is nothing to recover"
            )
        };
        Err(Fault::new(Reason::Usage, message).advice(format!(
            "Run '{}' without --recover-from. With --force the data of one is taken all the same, and what only the \
             others know is lost",
            ctx.hint("start")
        )))
    }

    async fn choose(&self, runner: &Runner<'_>, cluster: &Cluster, asked: &str) -> Result<String> {
        let refused = |message: String| {
            let names: Vec<&str> = self.all().map(String::as_str).collect();
            let advice = if names.is_empty() {
                format!(
                    "No control plane has etcd's data: '{}' the cluster and start it again",
                    runner.ctx.hint("delete")
                )
            } else {
                format!("etcd's data is there on: {}", names.join(", "))
            };
            Fault::new(Reason::NodeRetrieve, message).advice(advice)
        };
        if asked != FRESHEST {
            let node = cluster.find_node(asked).map(|n| cluster.machine(n));
            return match node.filter(|m| self.all().any(|c| c == m)) {
                Some(machine) => Ok(machine),
                None => Err(refused(format!("{asked} has no data of etcd to recover from")).into()),
            };
        }
        let candidates = if self.whole.is_empty() { &self.replaced } else { &self.whole };
        match candidates.as_slice() {
            [] => Err(refused("etcd's data is gone on all control planes".to_owned()).into()),
            [one] => Ok(one.clone()),
            several => freshest(runner, several).await,
        }
    }

    /// The others' data is untouched while the chosen copy has not served.
    fn another(&self, ctx: &Ctx, from: &str, why: anyhow::Error) -> anyhow::Error {
        let others: Vec<&str> = self.all().map(String::as_str).filter(|m| *m != from).collect();
        if why.is::<Fault>() || others.is_empty() {
            return why;
        }
        let advice = format!(
            "The data of the others is untouched. Run '{} --recover-from=NODE' with one of: {}",
            ctx.hint("start"),
            others.join(", ")
        );
        Fault::new(Reason::GuestStart, format!("etcd could not be recovered from {from}: {why:#}"))
            .advice(advice)
            .into()
    }
}

/// By their logs, read in the nodes: without a majority none of them answers. One that cannot be read is passed over.
async fn freshest(runner: &Runner<'_>, machines: &[String]) -> Result<String> {
    runner.network_up().await?;
    let looks = machines.iter().map(|machine| async move {
        runner.boot(machine).await?;
        let said = runner.in_node(machine, &etcd::progress_command()).await?;
        let index: u64 = said.trim().parse().with_context(|| format!("etcd of {machine}: {said:?}"))?;
        anyhow::Ok((index, machine))
    });
    let mut best: Option<(u64, &String)> = None;
    for (look, machine) in join_all(looks).await.into_iter().zip(machines) {
        match look {
            Ok(found) => {
                tracing::info!("etcd of {machine} has committed {}", found.0);
                best = best.filter(|known| known.0 >= found.0).or(Some(found));
            }
            Err(why) => runner.ctx.warn(format!("The copy of etcd on {machine} cannot be read: {why:#}")),
        }
    }
    match best {
        Some((_, machine)) => Ok(machine.clone()),
        None => bail!("no copy of etcd's data can be read"),
    }
}

/// Those of these machines that have data of etcd.
async fn with_data(home: &Home, driver: &Machines, machines: impl Iterator<Item = String>) -> Vec<String> {
    let mut found = Vec::new();
    for machine in machines {
        if look::has_etcd_data(home, driver, &machine).await {
            found.push(machine);
        }
    }
    found
}

/// Members of etcd by the word of one of them, when too few have data left to ever agree again.
pub async fn lost_for_good(
    home: &Home,
    cluster: &Cluster,
    driver: &Machines,
    pki: &Pki,
    node: &Node,
) -> Option<Lost> {
    let known = etcd::members_known_to(pki, node.ip, driver.dial(vec![cluster.machine(node)])).await;
    let members = known.inspect_err(|e| tracing::debug!("{e:#}")).ok()?;
    let voters: Vec<_> = members.iter().filter(|m| !m.learner).collect();
    let given_up = |m: &String| membership::read(home, &cluster.name, m).is_some_and(|n| n != Note::Unsure);
    let machine_of = |m: &etcd::Member| {
        let node = cluster.nodes.iter().find(|n| m.peers.contains(&etcd::peer_url(n.ip)));
        node.map_or_else(|| m.name.clone(), |n| cluster.machine(n))
    };
    let kept = voters.iter().map(|m| machine_of(m)).filter(|m| !given_up(m));
    let left = with_data(home, driver, kept).await;
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
    /// Once with the flag, until there is one member; then the flag goes while the machine is off, so that
    /// there is never an etcd with members that would throw them out at its next start.
    pub(super) async fn recover_etcd(&self, machine: &str) -> Result<()> {
        membership::clear(self.home(), self.profile, machine)?;
        self.force(machine, true).await?;
        let served = self.serves_alone(machine).await;
        self.driver.power_off(machine, super::steps::GRACE).await?;
        self.force(machine, false).await?;
        served
    }

    async fn serves_alone(&self, machine: &str) -> Result<()> {
        self.boot(machine).await?;
        let began = Instant::now();
        loop {
            let members =
                self.in_node(machine, &etcd::list_command()).await.and_then(|said| etcd::parse(&said));
            match members {
                Ok(members) if members.len() == 1 => return Ok(()),
                Err(e) if began.elapsed() > ANSWER => return Err(e),
                other => tracing::debug!("not yet: {other:?}"),
            }
            sleep(AGAIN).await;
        }
    }

    async fn force(&self, machine: &str, force: bool) -> Result<()> {
        let path = format!("{}/etcd.yaml", bootstrap::paths::MANIFESTS);
        let Some(text) = drivers::machine::files::read(self.home(), machine, &path) else {
            bail!("{machine} has no manifest of etcd");
        };
        let text = etcd::forced(&String::from_utf8_lossy(&text), force);
        let file = model::node_spec::NodeFile::new(path, 0o600, text);
        self.driver.write(self.home(), machine, &[file]).await
    }
}

/// Exists from the moment that the user has a cluster deleted.
fn deleting_file(home: &Home, profile: &str) -> PathBuf {
    home.profile(profile).join("deleting")
}

/// The user does not need the cluster's data any more.
pub fn is_given_up(home: &Home, profile: &str) -> Result<()> {
    Ok(atomic::write(&deleting_file(home, profile), b"", 0o600)?)
}

/// A cluster that was started is one that is needed.
pub fn is_kept(home: &Home, profile: &str) -> Result<()> {
    Ok(atomic::remove(&deleting_file(home, profile))?)
}

/// A cluster that was set up is never replaced by an empty one, unless its deletion was begun.
pub async fn check_members(
    ctx: &Ctx,
    cluster: &Cluster,
    driver: &Machines,
    observed: &Observed,
) -> Result<(), Fault> {
    let planes = || cluster.control_planes().map(|n| cluster.machine(n));
    let may_vote = |m: &String| observed.nodes.get(m).is_some_and(|n| n.membership.may_vote());
    if !observed.configured
        || planes().any(|m| may_vote(&m))
        || deleting_file(&ctx.home, &cluster.name).exists()
    {
        return Ok(());
    }
    let missing: Vec<String> = planes().filter(|m| !observed.nodes.contains_key(m)).collect();
    let message = if missing.is_empty() {
        "etcd's data is gone on all control planes: the cluster cannot be repaired".to_owned()
    } else {
        let dir = ctx.home.machine(&missing[0]);
        format!(
            "The machine {} of this cluster is gone ({}), and etcd's data with it",
            missing.join(", "),
            dir.display()
        )
    };
    let mut advice = format!(
        "Put its directory back from a copy, or run '{}' and then '{}' for a new, empty cluster",
        ctx.hint("delete"),
        ctx.hint("start")
    );
    let there = planes().filter(|m| observed.nodes.contains_key(m));
    if let Some(old) = with_data(&ctx.home, driver, there).await.first() {
        advice += &format!(
            ". {old} left etcd earlier; its copy from then is in {} (see 'etcdutl snapshot restore')",
            drivers::machine::var_dir(&ctx.home, old).join("lib/minikube/etcd/member/snap/db").display()
        );
    }
    Err(Fault::new(Reason::GuestStart, message).advice(advice))
}
