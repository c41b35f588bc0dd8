//! `image`: container images, on all nodes at once.

mod args;
mod build;
mod list;
mod load;
mod save;

use anyhow::{Context as _, Result};
use model::{Cluster, Fault, Node, Reason};

pub use args::{Args, BuildArgs, Command, LoadArgs, SaveArgs};
pub use load::load_file;
pub use save::{cached, load_and_keep};

use super::cluster as common;
use crate::core::containers::{self as images, Stores, image_name as name};
use crate::ctx::Ctx;
use crate::report::{Event, Style};
use crate::state::lock::ProfileLock;
use crate::state::profile;

pub fn default_reason(command: &Command) -> Reason {
    match command {
        Command::Build(_) => Reason::ImageBuild,
        Command::Load(_) => Reason::ImageLoad,
        Command::List(_) => Reason::ImageList,
        Command::Rm(_) => Reason::ImageRemove,
        Command::Tag(_) => Reason::ImageTag,
        Command::Save(_) => Reason::ImageSave,
        Command::Pull(_) => Reason::ImagePull,
        Command::Push(_) => Reason::ImagePush,
    }
}

pub fn run(ctx: &Ctx, args: &Args) -> Result<u8> {
    match &args.command {
        Command::Build(args) => build::run(ctx, args)?,
        Command::Load(args) => load::run(ctx, args)?,
        Command::List(args) => ctx.run(list::run(ctx, args))?,
        Command::Rm(args) => {
            let names = names(&args.images)?;
            ctx.run(remove(ctx, &names, &args.node))?;
        }
        Command::Tag(args) => {
            let (from, to) = (name(&args.source)?, name(&args.target)?);
            ctx.run(tag(ctx, &from, &to))?;
        }
        Command::Save(args) => save::run(ctx, args)?,
        Command::Pull(args) => {
            let names = names(&args.images)?;
            ctx.run(pull(ctx, &names, &args.node))?;
        }
        Command::Push(args) => {
            let names = names(&args.images)?;
            ctx.run(push(ctx, &names))?;
        }
    }
    Ok(0)
}

fn names(texts: &[String]) -> Result<Vec<String>, Fault> {
    texts.iter().map(|t| name(t)).collect()
}

/// For these commands a profile that is not there is a mistake in the command line, as in minikube.
fn cluster(ctx: &Ctx) -> Result<Cluster, Fault> {
    let found = profile::load(&ctx.home, &ctx.profile)?;
    let missing = || {
        Fault::new(Reason::UsageNoProfile, format!("There is no cluster \"{}\"", ctx.profile))
            .advice(format!("Run '{}' first", ctx.hint("start")))
    };
    Ok(found.ok_or_else(missing)?.cluster)
}

/// The stores of the nodes that are meant. One that is named must run; of all, those that do not get the
/// images when they come back.
async fn stores(ctx: &Ctx, cluster: &Cluster, asked: &[String]) -> Result<Stores> {
    let nodes =
        asked.iter().map(|n| common::node(cluster, Some(n))).collect::<Result<Vec<&Node>, Fault>>()?;
    let stores = images::stores(ctx, cluster, &nodes).await?;
    if let Some(machine) = stores.down.first().filter(|_| !asked.is_empty()) {
        let message = format!("The node {machine} is not running");
        return Err(Fault::new(Reason::HostNotRunning, message).into());
    }
    if stores.running.is_empty() {
        return Err(common::not_running(&cluster.name, "Stopped").into());
    }
    Ok(stores)
}

fn later(ctx: &Ctx, stores: &Stores) {
    for machine in &stores.down {
        let message = format!("{machine} is not running: it gets the images when it starts");
        ctx.emit(Event::info(Style::Notice, message));
    }
}

fn nobody_has(reason: Reason, name: &str) -> Fault {
    Fault::new(reason, format!("No node has the image {name}")).advice("List the images with 'image ls'")
}

async fn remove(ctx: &Ctx, names: &[String], asked: &[String]) -> Result<()> {
    let _lock = ProfileLock::acquire(ctx, &ctx.profile).await?;
    let cluster = cluster(ctx)?;
    let stores = stores(ctx, &cluster, asked).await?;
    for name in names {
        if !images::remove(ctx, &cluster, &stores, name).await? {
            return Err(nobody_has(Reason::ImageRemove, name).into());
        }
    }
    Ok(())
}

async fn tag(ctx: &Ctx, from: &str, to: &str) -> Result<()> {
    let _lock = ProfileLock::acquire(ctx, &ctx.profile).await?;
    let cluster = cluster(ctx)?;
    let stores = stores(ctx, &cluster, &[]).await?;
    if !images::tag(ctx, &cluster, &stores, from, to).await? {
        return Err(nobody_has(Reason::ImageTag, from).into());
    }
    later(ctx, &stores);
    Ok(())
}

async fn pull(ctx: &Ctx, names: &[String], asked: &[String]) -> Result<()> {
    let _lock = ProfileLock::acquire(ctx, &ctx.profile).await?;
    let cluster = cluster(ctx)?;
    let stores = stores(ctx, &cluster, asked).await?;
    for name in names {
        images::pull(ctx, &cluster, &stores, name).await?;
    }
    later(ctx, &stores);
    Ok(())
}

async fn push(ctx: &Ctx, names: &[String]) -> Result<()> {
    let cluster = cluster(ctx)?;
    let stores = stores(ctx, &cluster, &[]).await?;
    for name in names {
        if !images::push(ctx, &stores, name).await.context("the registry did not take it")? {
            return Err(nobody_has(Reason::ImagePush, name).into());
        }
    }
    Ok(())
}
