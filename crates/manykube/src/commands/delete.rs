//! `delete`: nothing of a cluster is left behind, also when its configuration is broken or gone.

use anyhow::{Context as _, Result};
use engine::crash;
use model::{Cluster, Fault, Home, Reason, minikube};

use super::cluster as common;
use crate::core;
use crate::ctx::Ctx;
use crate::inside::{door, others};
use crate::report::{Event, Output, Style, steps};
use crate::state::lock::ProfileLock;
use crate::state::{profile, settings};

#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Delete all clusters
    #[arg(long)]
    pub all: bool,
    /// Delete the home directory too
    #[arg(long)]
    pub purge: bool,
    /// text, or json: one event per line
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    pub output: Output,
}

pub fn run(ctx: &Ctx, args: &Args) -> Result<u8> {
    let all = profile::list(&ctx.home)?.into_iter().map(|(name, _)| name);
    // The record of a cluster that is elsewhere is not the cluster.
    let passed_over = others::here(&ctx.home);
    let (elsewhere, known): (Vec<String>, Vec<String>) =
        all.partition(|name| passed_over.iter().any(|other| other.name == *name));
    if args.purge && !elsewhere.is_empty() {
        let message = format!("Clusters of other engines were found: {}", elsewhere.join(", "));
        let advice = format!("Delete them first: {} delete -p NAME", ctx.tool);
        return Err(Fault::new(Reason::Usage, message).advice(advice).into());
    }
    let others: Vec<&str> = known.iter().map(String::as_str).filter(|name| *name != ctx.profile).collect();
    if args.purge && !args.all && !others.is_empty() {
        let message = format!("Other profiles were found: {}", others.join(", "));
        return Err(Fault::new(Reason::Usage, message).advice("Use --purge together with --all").into());
    }
    let doomed = if args.all { known } else { vec![ctx.profile.clone()] };
    ctx.run(async {
        for name in &doomed {
            delete(ctx, name).await?;
        }
        // Machines whose profile is lost belong to "all" as well.
        let strays = if args.all { core::profiles_of_machines(ctx).await? } else { Vec::new() };
        for name in strays.iter().filter(|name| !elsewhere.contains(*name)) {
            delete(ctx, name).await?;
        }
        Ok(())
    })?;
    settings::set(&ctx.home, "profile", None)?;
    if args.all {
        others::refuse(ctx, "delete", Reason::GuestDeletion, &passed_over)?;
        ctx.emit(Event::info(Style::Deleted, "Successfully deleted all profiles"));
    }
    if args.purge {
        purge(ctx)?;
    }
    Ok(0)
}

async fn delete(ctx: &Ctx, name: &str) -> Result<()> {
    let lock = ProfileLock::acquire(ctx, name).await?;
    // A profile that cannot be read has no schedule that could be.
    let _ = super::schedule::cancel(ctx, name);
    let cluster = match profile::load(&ctx.home, name) {
        Ok(Some(file)) => {
            if let Some(migrated) = &file.migrated {
                let machines = minikube::machines(&file.raw).join(", ");
                ctx.warn(format!(
                    "minikube's own machines of \"{name}\" (driver {}: {machines}) are not manykube's, and are left",
                    migrated.driver
                ));
            }
            Some(file.cluster)
        }
        Ok(None) => {
            ctx.warn(format!("\"{name}\" profile does not exist, trying anyways."));
            None
        }
        // What cannot be read can still be deleted.
        Err(fault) => {
            ctx.warn(fault.message);
            None
        }
    };
    if cluster.is_some() {
        ctx.recorder.open(&ctx.home.profile_events(name))?;
    }
    let driver = cluster.as_ref().map_or_else(String::new, |c| format!(" in {}", c.driver));
    let message = format!("Deleting \"{name}\"{driver} ...");
    ctx.emit(Event::step(steps::delete::DELETING, Style::Deleting, message));
    remove(ctx, name, cluster.as_ref(), lock).await?;
    let message = format!("Removed all traces of the \"{name}\" cluster.");
    ctx.emit(Event::step(steps::delete::DONE, Style::Deleted, message));
    Ok(())
}

/// Machines first, the record of them last: a delete that was cut short can be run again.
pub async fn remove(ctx: &Ctx, name: &str, cluster: Option<&Cluster>, lock: ProfileLock) -> Result<()> {
    super::fault::lift_if_possible(ctx, name, None).await;
    core::delete(ctx, name, cluster).await?;
    if let Err(fault) = common::remove_from_kubeconfig(&ctx.home, name) {
        ctx.warn(fault.message);
    }
    let dir = ctx.home.profile(name);
    crash::place("remove-profile", "before");
    match std::fs::remove_dir_all(&dir) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            return Err(e).with_context(|| format!("remove {}", dir.display()));
        }
        _ => {}
    }
    door::forget(&ctx.home, name)?;
    crash::place("remove-profile", "after");
    lock.remove();
    Ok(())
}

/// What we make in a home. Nothing else is removed: somebody may have named a directory that has more.
const OURS: [&str; 20] = [
    "addons",
    "bin",
    "ca.crt",
    "ca.key",
    "cache",
    "certs",
    "config",
    "doors",
    "files",
    "host-settings.json",
    "locks",
    "logs",
    "machines",
    "networks",
    "profiles",
    "proxy-client-ca.crt",
    "proxy-client-ca.key",
    "last_update_check",
    "machine_client.lock",
    "tunnels.json",
];

/// Of this host, whether or not a profile knows them.
pub fn has_machines(home: &Home) -> bool {
    match std::fs::read_dir(home.machines()) {
        Ok(mut all) => all.next().is_some(),
        Err(e) => e.kind() != std::io::ErrorKind::NotFound,
    }
}

pub fn purge(ctx: &Ctx) -> Result<()> {
    let root = ctx.home.root();
    let failed = |e: std::io::Error| {
        Fault::new(Reason::HostPurge, format!("Unable to remove {}: {e}", root.display()))
    };
    let own = Home::new(root, None);
    let (cache, other) = (own.cache(), drivers::machine::other_user(&own));
    for name in OURS.into_iter().filter(|name| *name != "cache" || other.is_none()) {
        let path = root.join(name);
        let removed =
            if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
        match removed {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(failed(e).into()),
            _ => {}
        }
    }
    match std::fs::remove_dir(root) {
        Err(e) if e.kind() == std::io::ErrorKind::DirectoryNotEmpty && other.is_some() => {
            let node = other.map(|node| node.to_string()).unwrap_or_default();
            ctx.warn(format!("{} is what {node} is made of, and is kept", cache.display()));
        }
        Err(e) if e.kind() == std::io::ErrorKind::DirectoryNotEmpty => {
            ctx.warn(format!("{} has files that are not ours and is kept", root.display()));
        }
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(failed(e).into()),
        _ => {}
    }
    let message = format!("Successfully purged {} directory", root.display());
    ctx.emit(Event::step(steps::delete::PURGE, Style::Deleted, message));
    Ok(())
}
