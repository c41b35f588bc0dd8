//! `start`: validate everything, save what is wanted, then let the core make it so.

mod args;
mod checks;
mod cni;
pub mod desired;
mod messages;
mod values;
mod versions;
mod vip;

use anyhow::Result;
use model::config_file::ConfigFile;
use model::{Cluster, DriverKind, Fault, VipBy, names};

pub use args::Args;
use desired::Facts;

use super::cluster as common;
use crate::core::{self, StartOpts, Started};
use crate::ctx::Ctx;
use crate::host;
use crate::state::lock::ProfileLock;
use crate::state::profile;

/// What is to be, and what to say about it.
struct Wanted {
    cluster: Cluster,
    /// The file that was there.
    old: Option<ConfigFile>,
    /// The text of a new cluster's pod network, when it is the user's.
    manifest: Option<String>,
    warnings: Vec<String>,
}

pub fn run(ctx: &Ctx, args: &Args) -> Result<u8> {
    checks::flags(args)?;
    ctx.run(start(ctx, args)).map(|()| 0)
}

async fn start(ctx: &Ctx, args: &Args) -> Result<()> {
    // All that can be refused is refused before the first file is made.
    let wanted = wanted(ctx, args).await?;
    messages::greeting(ctx, &wanted.cluster, wanted.old.is_some(), args.driver.is_some());
    checks::ignored(args).into_iter().chain(wanted.warnings.clone()).for_each(|w| ctx.warn(w));
    if args.dry_run {
        core::start(ctx, &wanted.cluster, opts(args)).await?;
        messages::dry_run(ctx);
        return Ok(());
    }
    let lock = ProfileLock::acquire(ctx, &ctx.profile).await?;
    // Of all that is new, one at a time: two would pick the same subnet.
    let choosing = choosing(ctx)?;
    // Again: while this command waited, another one may have changed the profile.
    let wanted = self::wanted(ctx, args).await?;
    if let Some(text) = &wanted.manifest {
        profile::save_cni(&ctx.home, &ctx.profile, text)?;
    }
    profile::save(&ctx.home, &wanted.cluster, wanted.old.as_ref().map(|f| &f.raw))?;
    drop(choosing);
    let result = make(ctx, args, &wanted).await;
    if result.is_err() && args.delete_on_failure && wanted.old.is_none() && !ctx.cancel.is_cancelled() {
        super::delete::remove(ctx, &ctx.profile, Some(&wanted.cluster), lock).await?;
    }
    result
}

/// Held while a subnet is chosen and written down; the choice itself takes milliseconds.
fn choosing(ctx: &Ctx) -> Result<std::fs::File> {
    let path = ctx.home.root().join("locks/subnet.lock");
    let file = fs_err::OpenOptions::new().create(true).append(true).open(path)?.into_parts().0;
    file.lock()?;
    Ok(file)
}

async fn wanted(ctx: &Ctx, args: &Args) -> Result<Wanted> {
    if names::is_reserved_profile(&ctx.profile) {
        return Err(super::profile::reserved(&ctx.profile).into());
    }
    let old = profile::load(&ctx.home, &ctx.profile)?;
    let before = old.as_ref().map(|f| &f.cluster);
    let driver = checks::driver(ctx, args, before)?;
    let version = version(args, before)?;
    let host = host::size();
    let mut manifest = None;
    let (cluster, warnings) = match before {
        Some(before) => {
            versions::check_change(&ctx.profile, &before.kubernetes_version, &version)?;
            desired::existing(before, args, host)?
        }
        None => {
            checks::name_is_free(&ctx.home, &ctx.profile)?;
            let cni = cni::asked(args)?.unwrap_or_default();
            manifest = cni::read(&cni)?;
            let vip_by = VipBy::Agent;
            let facts = Facts { profile: &ctx.profile, driver, version, host, taken: &[], cni, vip_by };
            // Flags first: what is wrong with them is the same on every host.
            desired::fresh(args, &facts)?;
            let taken = core::network_in_use(ctx).await?;
            let images = core::images_of(ctx, &facts.version)?;
            let vip_by = vip::choose(args, &images).await?;
            (desired::fresh(args, &Facts { taken: &taken, vip_by, ..facts })?, Vec::new())
        }
    };
    host_can(ctx, args, driver)?;
    if old.is_none() {
        core::image_can(ctx, &cluster.kubernetes_version)?;
    }
    let mut warnings = warnings;
    warnings.extend(desired::even(&cluster));
    warnings.extend(core::room(ctx, &cluster, args.force).await?);
    Ok(Wanted { cluster, old, manifest, warnings })
}

fn version(args: &Args, old: Option<&Cluster>) -> Result<String, Fault> {
    match (args.kubernetes_version.as_deref(), old) {
        (None | Some(""), Some(old)) => Ok(old.kubernetes_version.clone()),
        (None | Some(""), None) => Ok(image::default_version().to_owned()),
        (Some(asked), _) => {
            image::resolve_version(asked).map_err(|_| versions::unknown(asked, &image::known_versions()))
        }
    }
}

fn host_can(ctx: &Ctx, args: &Args, driver: DriverKind) -> Result<(), Fault> {
    if !args.force {
        checks::disk(&ctx.home)?;
    }
    checks::root(ctx, driver)?;
    core::preflight(ctx)
}

fn opts(args: &Args) -> StartOpts {
    StartOpts { dry_run: args.dry_run, wait_timeout: args.wait_timeout }
}

async fn make(ctx: &Ctx, args: &Args, wanted: &Wanted) -> Result<()> {
    let cluster = &wanted.cluster;
    ctx.recorder.open(&ctx.home.profile_events(&cluster.name))?;
    messages::starting(ctx, cluster);
    if core::start(ctx, cluster, opts(args)).await? == Started::AlreadyRunning {
        tracing::info!("The running cluster does not require reconfiguration");
        messages::already_running(ctx, cluster);
    }
    common::write_kubeconfig(ctx, cluster, !cluster.keep_context)?;
    messages::pod_network(ctx, cluster);
    messages::done(ctx, cluster);
    Ok(())
}
