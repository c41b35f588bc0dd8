//! New nodes: `add` brings them up, `create` only makes them.

use anyhow::Result;
use model::config_file::ConfigFile;
use model::{Cluster, Fault, Node, Reason};

use super::args::Join;
use super::wanted::Request;
use super::{Among, WAIT, common, load, remove, role, shown};
use crate::ctx::Ctx;
use crate::report::{Event, Style};
use crate::state::lock::ProfileLock;
use crate::state::pending::{self, Pending};
use crate::state::profile;
use crate::{core, host};

/// What is to be, with all that can be refused looked at; nothing is saved yet.
struct Prepared {
    file: ConfigFile,
    /// Without the new ones, also when an earlier command has put them into the file.
    before: Cluster,
    cluster: Cluster,
    new: Vec<Node>,
}

impl Prepared {
    fn machines(&self) -> Vec<String> {
        self.new.iter().map(|n| self.cluster.machine(n)).collect()
    }

    fn save(&self, ctx: &Ctx) -> Result<()> {
        pending::begin(&ctx.home, &self.cluster, Pending::Adding, &self.new)?;
        Ok(profile::save(&ctx.home, &self.cluster, Some(&self.file.raw))?)
    }
}

async fn prepare(ctx: &Ctx, request: &Request) -> Result<Prepared> {
    let file = load(ctx)?;
    let new =
        request.nodes(&file.cluster, &pending::unfinished(&ctx.home, &file.cluster, Pending::Adding))?;
    names_are_free(ctx, &file.cluster, &new)?;
    let mut before = file.cluster.clone();
    before.nodes.retain(|n| new.iter().all(|m| m.name != n.name));
    let mut cluster = file.cluster.clone();
    if before.nodes.len() == cluster.nodes.len() {
        cluster.nodes.extend(new.iter().cloned());
        cluster.share_memory(before.nodes.len(), host::size().memory_mib);
    } else {
        ctx.emit(Event::info(Style::Notice, "Carrying on where an earlier command was cut short"));
    }
    common::able(Some(&before), &cluster)?;
    core::base_images::settle(ctx, &mut cluster, Some(&before), false).await?;
    let new = cluster.nodes.iter().filter(|n| new.iter().any(|m| m.name == n.name)).cloned().collect();
    if request.edit.version.is_some() {
        core::images_can(ctx, &cluster)?;
    }
    core::room(ctx, &cluster, false).await?.into_iter().for_each(|w| ctx.warn(w));
    Ok(Prepared { file, before, cluster, new })
}

/// A machine may not bear the name of another profile, or of a machine of one.
fn names_are_free(ctx: &Ctx, cluster: &Cluster, new: &[Node]) -> Result<(), Fault> {
    for (other, file) in profile::list(&ctx.home)? {
        if other == cluster.name {
            continue;
        }
        let theirs: Vec<String> = match &file {
            Ok(file) => file.cluster.nodes.iter().map(|n| file.cluster.machine(n)).collect(),
            Err(_) => Vec::new(),
        };
        let machines = new.iter().map(|n| cluster.machine(n));
        if let Some(machine) = machines.into_iter().find(|m| *m == other || theirs.contains(m)) {
            return Err(Fault::new(
                Reason::NodeAdd,
                format!("The name {machine} is taken by the cluster {other:?}"),
            )
            .advice("Name the node with --name"));
        }
    }
    Ok(())
}

pub async fn add(ctx: &Ctx, request: &Request) -> Result<()> {
    let _lock = ProfileLock::acquire(ctx, &ctx.profile).await?;
    let prepared = prepare(ctx, request).await?;
    common::require_healthy(ctx, &prepared.file.cluster).await?;
    let Prepared { before, cluster, new, .. } = &prepared;
    announce(ctx, request, cluster, new);
    if request.control_plane {
        crate::commands::start::desired::even(cluster).into_iter().for_each(|w| ctx.warn(w));
    }
    prepared.save(ctx)?;
    let by_kubeadm = request.join == Join::Kubeadm;
    if let Err(error) = core::add_by(ctx, cluster, &prepared.machines(), WAIT, by_kubeadm).await {
        if request.delete_on_failure && !ctx.cancel.is_cancelled() {
            for node in new.iter().rev() {
                remove(ctx, &load(ctx)?, node, true).await?;
            }
        }
        return Err(error);
    }
    common::point_kubeconfig(ctx, before, cluster)?;
    pending::end(&ctx.home, &cluster.name, |name| new.iter().any(|n| n.name == name))?;
    for node in new {
        let message = format!("Successfully added {} to {}!", shown(cluster, node), cluster.name);
        ctx.emit(Event::info(Style::Ready, message));
    }
    Ok(())
}

fn announce(ctx: &Ctx, request: &Request, cluster: &Cluster, new: &[Node]) {
    let roles = match (request.worker, request.control_plane) {
        (true, true) => "worker control-plane",
        (false, true) => "control-plane",
        _ => "worker",
    };
    for node in new {
        let message =
            format!("Adding node {} to cluster {} as [{roles}]", shown(cluster, node), cluster.name);
        ctx.emit(Event::info(Style::Happy, message));
        let (machine, role) = (cluster.machine(node), role(node));
        let message = format!("Starting \"{machine}\" {role} node in \"{}\" cluster", cluster.name);
        ctx.emit(Event::info(Style::Starting, message));
    }
}

/// A worker needs nobody's help to be made; a control plane is made when it joins, and not before.
pub async fn create(ctx: &Ctx, request: &Request, among: Among) -> Result<()> {
    let _lock = ProfileLock::acquire(ctx, &ctx.profile).await?;
    let prepared = prepare(ctx, request).await?;
    let cluster = &prepared.cluster;
    for machine in prepared.machines() {
        let message = format!("Creating \"{machine}\" worker node in \"{}\" cluster", cluster.name);
        ctx.emit(Event::info(Style::Starting, message));
    }
    prepared.save(ctx)?;
    if let Err(error) = core::create(ctx, cluster, &prepared.machines(), WAIT).await {
        // Whoever interrupts it may want to carry on; what cannot be made is not kept for `start` to trip over.
        if !ctx.cancel.is_cancelled() {
            for node in prepared.new.iter().rev() {
                remove(ctx, &load(ctx)?, node, true).await?;
            }
        }
        return Err(error);
    }
    pending::end(&ctx.home, &cluster.name, |name| prepared.new.iter().any(|n| n.name == name))?;
    for node in &prepared.new {
        let name = shown(cluster, node);
        let hint = ctx.hint(&format!("{} start {name}", among.noun()));
        ctx.emit(Event::info(Style::Ready, format!("Created node {name}. To start it, run: \"{hint}\"")));
    }
    Ok(())
}
