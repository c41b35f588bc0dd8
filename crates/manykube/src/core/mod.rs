//! What touches machines: observe, plan, run. The commands call these and nothing below them.

mod able;
pub mod base_images;
mod certificates;
mod channel;
pub mod containers;
pub mod docker;
mod etcd;
mod images;
pub mod layers;
mod leave;
pub mod local_socket;
mod look;
mod machines;
mod manifests;
mod membership;
pub mod mounts;
pub mod pause;
mod recover;
pub mod registry;
mod room;
mod session;
mod setup;
mod shared;
mod ssh;
mod steps;

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Output};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use drivers::NoStream;
use drivers::docker::Docker;
use drivers::native::Native;
use futures::future::join_all;
use ipnet::Ipv4Net;
use model::node_config::{Change, Setup, Takes};
use model::status::NodeStatusInput;
use model::{Cluster, DriverKind, Fault, Node, Reason};
use plan::{Plan, phase};

pub use able::able;
pub use channel::{Machines, is_off};
pub use images::damaged;
pub use leave::leave;
pub use recover::FRESHEST;

use crate::ctx::Ctx;
use crate::report::{self, Event, steps::start as step};
use shared::Shared;
use steps::Runner;

/// Taking down is bounded by the nodes' own grace periods; this is for a host that is stuck.
const TAKE_DOWN: Duration = Duration::from_secs(120);

/// How a start is to be done, as opposed to what is to be there after it.
#[derive(Debug, Clone)]
pub struct StartOpts {
    pub dry_run: bool,
    pub wait_timeout: Duration,
    /// A node whose copy of etcd's data is to be taken, when the majority is lost for good.
    pub recover_from: Option<String>,
    /// Also when the majority has its data.
    pub force: bool,
}

/// What a start did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Started {
    /// There was nothing to do.
    AlreadyRunning,
    Changed,
}

pub fn driver(ctx: &Ctx, kind: DriverKind) -> Machines {
    driver_in(&ctx.home, kind)
}

fn driver_in(home: &model::Home, kind: DriverKind) -> Machines {
    let home = home.clone();
    Machines::new(match kind {
        DriverKind::Native => Arc::new(Native::new(home)),
        DriverKind::Docker | DriverKind::Podman => Arc::new(Docker::new(home, kind)),
    })
}

/// That which runs a machine of this home.
pub fn driver_of(ctx: &Ctx, machine: &str) -> Machines {
    driver_of_home(&ctx.home, machine)
}

fn driver_of_home(home: &model::Home, machine: &str) -> Machines {
    driver_in(home, drivers::machine::driver_of(home, machine).unwrap_or(DriverKind::Native))
}

/// Those that have machines in this home.
fn drivers_in_use(ctx: &Ctx) -> Vec<Machines> {
    let all = drivers::machine::of_home(&ctx.home);
    let used = DriverKind::ALL.into_iter().filter(|kind| all.iter().any(|(_, k)| k == kind));
    used.map(|kind| driver(ctx, kind)).collect()
}

async fn all_machines(ctx: &Ctx) -> Result<Vec<drivers::Machine>> {
    let mut machines = Vec::new();
    for driver in drivers_in_use(ctx) {
        machines.extend(driver.list().await?);
    }
    Ok(machines)
}

/// Nodes that an earlier version booted have no channel. They boot with one.
async fn old_agents(ctx: &Ctx, cluster: &Cluster, driver: &Machines) -> Result<(), Fault> {
    let look = async |machine: String| match driver.node(&machine).await {
        Err(e) if matches!(e.downcast_ref(), Some(NoStream::Old(_))) => Some(machine),
        _ => None,
    };
    let old = join_all(cluster.nodes.iter().map(|n| look(cluster.machine(n)))).await;
    let old: Vec<String> = old.into_iter().flatten().collect();
    if old.is_empty() {
        return Ok(());
    }
    let message =
        format!("An earlier version of manykube started {}, and this one cannot speak to it", old.join(", "));
    let advice = format!("Run '{}', then '{}': nothing is lost", ctx.hint("stop"), ctx.hint("start"));
    Err(Fault::new(Reason::GuestStart, message).advice(advice))
}

/// Plans and runs (or, with `dry_run`, prints the plan). The caller holds the profile's lock, has saved `cluster`
/// (not when dry) and writes the user's kubeconfig afterwards.
pub async fn start(ctx: &Ctx, cluster: &Cluster, opts: StartOpts) -> Result<Started> {
    let driver = driver(ctx, cluster.driver);
    let unfinished = || recover::unfinished(&ctx.home, &cluster.name).map(|_| FRESHEST.to_owned());
    if let Some(from) = opts.recover_from.clone().or_else(unfinished).filter(|_| !opts.dry_run) {
        recover::recover(ctx, cluster, &from, &opts).await?;
    }
    old_agents(ctx, cluster, &driver).await?;
    let observed = look::observe(&ctx.home, cluster, &driver, &[]).await?;
    recover::check_members(ctx, cluster, &driver, &observed).await?;
    certificates::tell(ctx, cluster)?;
    let plan = plan::start(cluster, &observed);
    if opts.dry_run {
        for line in plan.to_string().lines() {
            ctx.emit(Event::info(report::Style::Option, line.trim_start()));
        }
        return Ok(Started::Changed);
    }
    let runner = Runner::new(ctx, cluster, &driver, opts.wait_timeout);
    for node in &cluster.nodes {
        runner.sync_files(&cluster.machine(node)).await?;
    }
    if plan.is_empty() {
        recover::is_kept(&ctx.home, &cluster.name)?;
        return Ok(Started::AlreadyRunning);
    }
    registry::prepare(&ctx.home, cluster)?;
    run(&runner, &plan).await?;
    recover::is_kept(&ctx.home, &cluster.name)?;
    containers::follow::resume(&ctx.home, &cluster.name)?;
    registry::resume(&ctx.home, cluster)?;
    Ok(Started::Changed)
}

/// Brings up some nodes of a cluster that runs, new ones and such that were stopped.
pub async fn add(ctx: &Ctx, cluster: &Cluster, machines: &[String], limit: Duration) -> Result<Started> {
    add_by(ctx, cluster, machines, limit, false).await
}

/// The same, with nodes that come taken in by `kubeadm join` if that is wanted.
pub async fn add_by(
    ctx: &Ctx,
    cluster: &Cluster,
    machines: &[String],
    limit: Duration,
    by_kubeadm: bool,
) -> Result<Started> {
    let driver = driver(ctx, cluster.driver);
    let mut leaving = membership::left(&ctx.home, cluster);
    leaving.retain(|m| !machines.contains(m));
    let observed = look::observe(&ctx.home, cluster, &driver, &leaving).await?;
    if !observed.configured {
        let message = format!("The cluster \"{}\" is not set up yet", cluster.name);
        return Err(Fault::new(Reason::GuestStart, message)
            .advice(format!("Run '{}' first", ctx.hint("start")))
            .into());
    }
    let plan = plan::add(cluster, &observed, machines);
    if plan.is_empty() {
        return Ok(Started::AlreadyRunning);
    }
    restarts_spare_etcd(ctx, cluster, &plan, &driver).await?;
    let runner = Runner { by_kubeadm, leaving, ..Runner::new(ctx, cluster, &driver, limit) };
    run(&runner, &plan).await?;
    containers::follow::resume(&ctx.home, &cluster.name)?;
    registry::resume(&ctx.home, cluster)?;
    Ok(Started::Changed)
}

/// Makes machines of workers without booting them.
pub async fn create(ctx: &Ctx, cluster: &Cluster, machines: &[String], limit: Duration) -> Result<()> {
    let driver = driver(ctx, cluster.driver);
    let leaving = membership::left(&ctx.home, cluster);
    let observed = look::observe(&ctx.home, cluster, &driver, &leaving).await?;
    let runner = Runner { leaving, ..Runner::new(ctx, cluster, &driver, limit) };
    run(&runner, &plan::create(cluster, &observed, machines)).await
}

/// One line for each change of a node that exists, which says what it takes.
pub fn changes(old: &Cluster, new: &Cluster) -> Vec<String> {
    let mut lines = Vec::new();
    for node in &new.nodes {
        let Some(before) = old.nodes.iter().find(|n| n.name == node.name) else { continue };
        for change in Setup::of(old, before).changes(&Setup::of(new, node)) {
            let takes = if change.takes == Takes::Live { "live" } else { "restart" };
            let (machine, Change { what, from, to, .. }) = (new.machine(node), change);
            lines.push(format!("~ {machine}: {what}: {from} -> {to} ({takes})"));
        }
    }
    lines
}

/// A control plane that restarts is missing for a while: the others must have etcd's majority meanwhile, unless there
/// are too few of them anyway.
async fn restarts_spare_etcd(ctx: &Ctx, cluster: &Cluster, plan: &Plan, driver: &Machines) -> Result<()> {
    let restarts = |m: &String| plan.steps().any(|s| *s == plan::Step::PowerOff(m.clone()));
    for machine in cluster.control_planes().map(|n| cluster.machine(n)).filter(restarts) {
        let etcd = etcd::Etcd { home: &ctx.home, cluster, driver, without: &machine };
        let Ok(members) = etcd.with_health().await else { continue };
        let voters = members.iter().filter(|m| m.voter).count();
        let others = || members.iter().filter(|m| m.voter && m.machine != machine);
        let healthy = others().filter(|m| m.healthy).count();
        if let Some(ill) = others().find(|m| !m.healthy)
            && healthy <= voters / 2
        {
            let message = format!(
                "{machine} cannot be restarted now: the etcd of {} is down, and etcd would have no majority meanwhile",
                ill.machine
            );
            let advice = format!("Start the other control planes with '{}' first", ctx.hint("start"));
            return Err(Fault::new(Reason::GuestStart, message).advice(advice).into());
        }
    }
    Ok(())
}

/// Stops all machines; the number of nodes that have one.
pub async fn stop(ctx: &Ctx, cluster: &Cluster) -> Result<usize> {
    let driver = driver(ctx, cluster.driver);
    let observed = look::observe(&ctx.home, cluster, &driver, &[]).await?;
    let runner = Runner::new(ctx, cluster, &driver, TAKE_DOWN);
    run(&runner, &plan::stop(&observed)).await?;
    Ok(observed.nodes.len())
}

/// Removes all machines and the network of a profile, also when its configuration is missing or corrupt.
/// The caller removes the profile's directory afterwards.
pub async fn delete(ctx: &Ctx, profile: &str, cluster: Option<&Cluster>) -> Result<()> {
    if ctx.home.profile(profile).is_dir() {
        recover::is_given_up(&ctx.home, profile)?;
    }
    let kinds = match cluster {
        Some(cluster) => vec![cluster.driver],
        None => kinds_of_lost(ctx).await,
    };
    for kind in kinds {
        delete_from(ctx, profile, cluster, &driver(ctx, kind)).await?;
    }
    Ok(())
}

/// A lost profile may have had any driver. An engine that does not answer is only missed when there are
/// machines of its.
async fn kinds_of_lost(ctx: &Ctx) -> Vec<DriverKind> {
    let used: Vec<DriverKind> = drivers_in_use(ctx).iter().map(|d| d.kind()).collect();
    // Whoever is not root has nothing on the host that is not known by a machine.
    let root = crate::host::is_root();
    let mut kinds = if root { vec![DriverKind::Native] } else { Vec::new() };
    for engine in DriverKind::ALL.into_iter().filter(|kind| kind.is_engine()) {
        if used.contains(&engine) || (root && driver(ctx, engine).preflight().await.is_ok()) {
            kinds.push(engine);
        }
    }
    kinds
}

async fn delete_from(ctx: &Ctx, profile: &str, cluster: Option<&Cluster>, driver: &Machines) -> Result<()> {
    let machines = look::machines_of(profile, cluster, driver).await?;
    let runner = Runner {
        ctx,
        cluster,
        profile,
        driver,
        patience: TAKE_DOWN,
        departing: None,
        leaving: Vec::new(),
        by_kubeadm: false,
        shared: Shared::default(),
    };
    run(&runner, &plan::delete(machines.keys())).await
}

/// Who has machines, whether or not there is a profile of that name.
pub async fn profiles_of_machines(ctx: &Ctx) -> Result<Vec<String>> {
    let mut owners: Vec<String> =
        all_machines(ctx).await?.into_iter().map(|m| m.profile.unwrap_or(m.name)).collect();
    owners.sort();
    owners.dedup();
    Ok(owners)
}

async fn run(runner: &Runner<'_>, plan: &Plan) -> Result<()> {
    let ctx = runner.ctx;
    let deadline = Instant::now() + runner.patience;
    let result =
        engine::run(runner.phases(plan), deadline, &ctx.cancel, &|event| ctx.emit(shown(event))).await;
    match result {
        Ok(()) => Ok(()),
        // What already says why and what to do is passed on as it is.
        Err(engine::Failure::Step { source, .. }) if source.is::<Fault>() => Err(source),
        Err(failure @ engine::Failure::TimedOut { .. }) => {
            Err(Fault::new(Reason::GuestStart, format!("{failure}"))
                .advice(format!("Look at '{}', then run '{}' again", ctx.hint("logs"), ctx.hint("start")))
                .into())
        }
        Err(failure) => Err(failure.into()),
    }
}

fn shown(event: engine::Event) -> Event {
    use engine::Event as E;
    let name = |node: Option<String>| node.unwrap_or_default();
    match event {
        E::PhaseStarted { phase, .. } => Event::PhaseStarted { step: numbered(&phase), phase },
        E::PhaseFinished { phase, elapsed } => Event::PhaseFinished { phase, elapsed },
        E::StepStarted { phase, step, node } => Event::StepStarted { phase, step, node: name(node) },
        E::StepFinished { phase, step, node, elapsed } => {
            Event::StepFinished { phase, step, node: name(node), elapsed }
        }
        E::StepFailed { phase, step, node, message, elapsed } => {
            Event::StepFailed { phase, step, node: name(node), elapsed, message }
        }
    }
}

/// minikube's number of a phase of ours, where it has one that comes at the same place.
fn numbered(phase: &str) -> Option<report::Step> {
    Some(match phase {
        phase::IMAGE => step::PULLING_BASE_IMAGE,
        phase::MACHINES => step::CREATING_CONTAINER,
        phase::BOOT => step::PREPARING_KUBERNETES,
        phase::CONTROL_PLANE => step::BOOTING_CONTROL_PLANE,
        phase::CONFIGURE => step::CONFIGURING_RBAC,
        phase::VERIFY => step::VERIFYING_KUBERNETES,
        _ => return None,
    })
}

/// The machines of this home that run.
pub async fn running(ctx: &Ctx) -> Result<BTreeSet<String>> {
    let all = all_machines(ctx).await?.into_iter();
    Ok(all.filter(|m| m.state == drivers::MachineState::Running).map(|m| m.name).collect())
}

/// The power comes back: a machine boots with what it has, and nothing is waited for.
pub async fn power_on(ctx: &Ctx, cluster: &Cluster, node: &Node) -> Result<()> {
    driver(ctx, cluster.driver).boot(&machines::spec(&ctx.home, cluster, node, None)?).await
}

/// One answer per node, in the order of `cluster.nodes`.
pub async fn observe(ctx: &Ctx, cluster: &Cluster) -> Result<Vec<NodeStatusInput>> {
    look::status(&ctx.home, cluster, &driver(ctx, cluster.driver)).await
}

/// A client of the cluster's API; `None` while there is no certificate for one.
pub fn client(ctx: &Ctx, cluster: &Cluster) -> Option<kube::Client> {
    look::client(&ctx.home, cluster, &driver(ctx, cluster.driver))
}

/// Runs a command in a node with our own standard streams; its exit code.
pub async fn exec(ctx: &Ctx, cluster: &Cluster, node: &Node, argv: Vec<String>, tty: bool) -> Result<i32> {
    let node = driver(ctx, cluster.driver).node(&cluster.machine(node)).await?;
    session::join(&node, argv, tty).await
}

/// Runs a command in a node and keeps what it prints.
pub async fn read_command(ctx: &Ctx, cluster: &Cluster, node: &Node, argv: Vec<String>) -> Result<Output> {
    let driver = driver(ctx, cluster.driver);
    let output = driver.run(&cluster.machine(node), &argv).await?;
    Ok(Output {
        status: ExitStatus::from_raw(output.code << 8),
        stdout: output.stdout,
        stderr: output.stderr,
    })
}

/// The host's networks (links, routes, other profiles): where no new subnet may lie.
pub async fn network_in_use(ctx: &Ctx, kind: DriverKind) -> Result<Vec<Ipv4Net>> {
    let mut taken = driver(ctx, kind).networks_in_use().await?;
    // A cluster that is stopped, or was before the host was restarted, keeps its addresses.
    let others = crate::state::profile::list(&ctx.home)?.into_iter().filter(|(name, _)| *name != ctx.profile);
    taken.extend(others.filter_map(|(_, file)| Some(file.ok()?.cluster.network.subnet)));
    Ok(taken)
}

/// Are there undamaged node images for all nodes, or all that it takes to build them?
pub fn images_can(ctx: &Ctx, cluster: &Cluster) -> Result<()> {
    images::usable(ctx, cluster)
}

/// The node image that a node is made of.
pub fn image_of(ctx: &Ctx, cluster: &Cluster, node: &Node) -> Result<image::NodeImage> {
    machines::root_image(&ctx.home, cluster, node)
}

/// The container images in the node image of a version; none while it is not built.
pub fn images_of(ctx: &Ctx, version: &str) -> Result<Vec<String>> {
    images_of_home(&ctx.home, version)
}

fn images_of_home(home: &model::Home, version: &str) -> Result<Vec<String>> {
    let found = image::Store::new(home.cache()).find(version)?;
    Ok(found.map(|image| image.manifest.images).unwrap_or_default())
}

/// The container images that the primary node has.
pub async fn images_in(ctx: &Ctx, cluster: &Cluster) -> Result<Vec<String>> {
    let Some(primary) = cluster.primary() else { return Ok(Vec::new()) };
    let argv = ["ctr", "-n", "k8s.io", "images", "list", "-q"].map(str::to_owned).to_vec();
    let output = read_command(ctx, cluster, primary, argv).await?;
    Ok(String::from_utf8_lossy(&output.stdout).lines().map(|l| l.trim().to_owned()).collect())
}

/// Can this host run machines of this driver?
pub async fn preflight(ctx: &Ctx, kind: DriverKind) -> Result<(), Fault> {
    driver(ctx, kind).preflight().await
}

/// Has this host the memory for all nodes of the cluster? A sentence when it is getting tight.
pub async fn room(ctx: &Ctx, cluster: &Cluster, force: bool) -> Result<Option<String>> {
    match room::check(ctx, cluster).await? {
        Err(_) if force => Ok(None),
        other => Ok(other?),
    }
}

/// The private key that a machine lets in; made now if it was made before there were any.
pub async fn ssh_key(ctx: &Ctx, machine: &str) -> Result<std::path::PathBuf> {
    ssh::keys(&ctx.home, &driver_of(ctx, machine), machine).await?;
    Ok(ssh::private_key(&ctx.home, machine))
}

/// What a machine is known by.
pub async fn ssh_host_key(ctx: &Ctx, machine: &str) -> Result<String> {
    ssh::keys(&ctx.home, &driver_of(ctx, machine), machine).await?;
    Ok(fs_err::read_to_string(ssh::host_key(&ctx.home, machine))?)
}

/// Where clients on the host reach the API server.
pub fn server(ctx: &Ctx, cluster: &Cluster) -> String {
    if let Some(server) = crate::inside::door::server(&ctx.home, &cluster.name) {
        return server;
    }
    let host = cluster.endpoint().unwrap_or(Ipv4Addr::LOCALHOST);
    format!("https://{host}:{}", cluster.api_port)
}
