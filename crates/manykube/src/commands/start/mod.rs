//! `start`: validate everything, save what is wanted, then let the core make it so.

mod args;
mod checks;
mod cni;
pub mod desired;
pub mod file;
mod french;
mod grace;
mod kept;
mod messages;
mod migrate;
mod proxy;
mod values;
pub mod versions;
mod vip;

use anyhow::Result;
use fs_err::os::unix::fs::OpenOptionsExt as _;
use model::config_file::ConfigFile;
use model::{Cluster, DriverKind, Fault, VipBy, names};

pub use args::Args;
use desired::Facts;

use super::cluster as common;
use crate::core::{self, StartOpts, Started};
use crate::ctx::Ctx;
use crate::host;
use crate::report::{Event, Style};
use crate::state::lock::ProfileLock;
use crate::state::{pending, profile};

/// How often a subnet is chosen again because another home took it first.
const CHOICES: usize = 20;

/// What is to be, and what to say about it.
struct Wanted {
    cluster: Cluster,
    /// The file that was there.
    old: Option<ConfigFile>,
    /// The text of a new cluster's pod network, when it is the user's.
    manifest: Option<String>,
    /// Those of the file; `None` without a file.
    manifests: Option<String>,
    warnings: Vec<String>,
    /// Of an existing cluster, by its file.
    changes: file::Changes,
}

impl Wanted {
    /// Names of the machines that go.
    fn removed(&self) -> Vec<String> {
        self.changes.removed.iter().map(|n| self.cluster.machine(n)).collect()
    }
}

impl Args {
    /// Reads the file, if there is one; the name it gives the cluster.
    pub fn read(&mut self) -> Result<Option<String>, Fault> {
        let Some(path) = &self.file else { return Ok(None) };
        let input = file::read(path)?;
        let name = input.parsed.file.name.clone();
        self.input = Some(input);
        Ok(name)
    }
}

pub fn run(ctx: &Ctx, args: &Args) -> Result<u8> {
    checks::flags(args)?;
    if args.input.is_some() {
        file::check_flags(args)?;
    }
    ctx.run(start(ctx, args)).map(|()| 0)
}

async fn start(ctx: &Ctx, args: &Args) -> Result<()> {
    profile::mend(ctx, &ctx.profile).await?;
    greet(ctx, args).await?;
    // All that can be refused is refused before the first file is made.
    let wanted = wanted(ctx, args).await?;
    messages::proxy(ctx, &wanted.cluster);
    checks::ignored(args).into_iter().chain(wanted.warnings.clone()).for_each(|w| ctx.warn(w));
    wanted.changes.lines.iter().for_each(|line| ctx.emit(Event::info(Style::Option, line)));
    if args.dry_run {
        core::start(ctx, &wanted.cluster, opts(args)).await?;
        messages::dry_run(ctx);
        return Ok(());
    }
    let agreed = wanted.removed();
    file::confirm(&agreed, args.yes)?;
    let lock = ProfileLock::acquire(ctx, &ctx.profile).await?;
    // Of all that is new, one at a time: two would pick the same subnet.
    let choosing = choosing(ctx)?;
    // Again: while this command waited, another one may have changed the profile.
    let wanted = settled(ctx, args).await?;
    if wanted.removed() != agreed {
        file::confirm(&wanted.removed(), args.yes)?;
    }
    let mut saved = wanted.cluster.clone();
    // A node is forgotten only when it is gone.
    saved.nodes.extend(wanted.changes.removed.iter().cloned());
    if let Some(text) = &wanted.manifest {
        profile::save_cni(&ctx.home, &ctx.profile, text)?;
    }
    if let Some(text) = &wanted.manifests {
        profile::save_manifests(&ctx.home, &ctx.profile, text)?;
    }
    profile::save(&ctx.home, &saved, wanted.old.as_ref().map(|f| &f.raw))?;
    drop(choosing);
    let result = make(ctx, args, &wanted, &saved).await;
    if result.is_err() && args.delete_on_failure && wanted.old.is_none() && !ctx.cancel.is_cancelled() {
        super::delete::remove(ctx, &ctx.profile, Some(&wanted.cluster), lock).await?;
    }
    result
}

/// Who speaks and what with, also where the rest is refused then.
async fn greet(ctx: &Ctx, args: &Args) -> Result<()> {
    let (driver, named) = asked(ctx, args).await?;
    let old = profile::load(&ctx.home, &ctx.profile)?;
    messages::greeting(ctx, driver, old.is_some(), named);
    Ok(())
}

/// That which a start with these arguments would use.
pub async fn driver(ctx: &Ctx, args: &Args) -> Result<DriverKind> {
    Ok(asked(ctx, args).await?.0)
}

/// The Kubernetes version whose node image a start with these arguments takes; none if it is to take another one.
pub fn stored_version(ctx: &Ctx, args: &Args) -> Result<Option<String>> {
    let merged = args.input.as_deref().map(|input| file::as_flags(args, &input.parsed.file));
    let old = profile::load(&ctx.home, &ctx.profile)?;
    let args = merged.as_ref().unwrap_or(args);
    if checks::node_defaults(args)?.base_image.is_some() {
        return Ok(None);
    }
    Ok(Some(match (args.kubernetes_version.as_deref(), old) {
        (None | Some(""), Some(old)) => old.cluster.kubernetes_version,
        (None | Some(""), None) => image::default_version().to_owned(),
        (Some(asked), _) => versions::resolve(asked)?,
    }))
}

/// The driver, and whether it was named.
async fn asked(ctx: &Ctx, args: &Args) -> Result<(DriverKind, bool)> {
    let merged = args.input.as_deref().map(|input| file::as_flags(args, &input.parsed.file));
    let args = merged.as_ref().unwrap_or(args);
    let old = profile::load(&ctx.home, &ctx.profile)?;
    let driver = checks::driver(ctx, args, old.as_ref().map(|f| &f.cluster)).await?;
    Ok((driver, args.driver.is_some()))
}

/// Of a new cluster with a subnet that no command of another home chooses meanwhile. One that was named is refused when it
/// is looked at again.
async fn settled(ctx: &Ctx, args: &Args) -> Result<Wanted> {
    let mut wanted = wanted(ctx, args).await?;
    for _ in 0..CHOICES {
        if wanted.old.is_some() || drivers::native::reserve(wanted.cluster.network.subnet).await? {
            break;
        }
        wanted = self::wanted(ctx, args).await?;
    }
    Ok(wanted)
}

/// Held while a subnet is chosen and written down; the choice itself takes milliseconds.
fn choosing(ctx: &Ctx) -> Result<std::fs::File> {
    let path = ctx.home.root().join("locks/subnet.lock");
    let mut options = fs_err::OpenOptions::new();
    let file = options.create(true).append(true).mode(0o600).open(path)?.into_parts().0;
    file.lock()?;
    Ok(file)
}

async fn wanted(ctx: &Ctx, args: &Args) -> Result<Wanted> {
    let input = args.input.as_deref();
    let merged = input.map(|input| file::as_flags(args, &input.parsed.file));
    let args = merged.as_ref().unwrap_or(args);
    if names::is_reserved_profile(&ctx.profile) {
        return Err(super::profile::reserved(&ctx.profile).into());
    }
    let mut old = profile::load(&ctx.home, &ctx.profile)?;
    if old.is_none() && names::node_number(&ctx.profile).is_some() {
        // `node delete m02` would mean the cluster's first node.
        return Err(super::profile::reserved(&ctx.profile).into());
    }
    let moved = match &mut old {
        Some(file) => migrate::settle(ctx, args, file).await?,
        None => Vec::new(),
    };
    let before = old.as_ref().map(|f| &f.cluster);
    let driver = checks::driver(ctx, args, before).await?;
    checks::listen_address(args, driver)?;
    let version = version(ctx, args, before, driver).await?;
    let host = host::size();
    let (mut manifest, mut changes) = (None, file::Changes::default());
    let (cluster, warnings) = match (before, input) {
        (Some(before), input) => {
            versions::check_change(&ctx.profile, &before.kubernetes_version, &version)?;
            match input {
                Some(input) => {
                    let base = file::over(before, args, &version, host)?;
                    let mut cluster = flags_last(input.resolve(&base, host, args.force)?, args)?;
                    core::base_images::keep(&mut cluster, before);
                    changes = file::changes(before, &cluster)?;
                    (cluster, input.notes())
                }
                None => desired::existing(before, args, host)?,
            }
        }
        (None, input) => {
            checks::name_is_free(&ctx.home, &ctx.profile)?;
            let cni = cni::asked(args)?.unwrap_or_default();
            manifest = cni::read(&cni)?;
            let vip_by = VipBy::Agent;
            let facts = Facts { profile: &ctx.profile, driver, version, host, taken: &[], cni, vip_by };
            // Flags first: what is wrong with them is the same on every host.
            desired::fresh(args, &facts)?;
            let mut taken = core::network_in_use(ctx, driver).await?;
            // Where the file puts pods, no subnet may be chosen either.
            taken.extend(input.and_then(|i| i.parsed.file.networking.pod_subnet));
            let images = core::images_of(ctx, &facts.version)?;
            let vip_by = vip::choose(args, &images).await?;
            let mut cluster = desired::fresh(args, &Facts { taken: &taken, vip_by, ..facts })?;
            match input {
                Some(input) => {
                    cluster.nodes.clear();
                    (flags_last(input.resolve(&cluster, host, args.force)?, args)?, input.notes())
                }
                None => (cluster, Vec::new()),
            }
        }
    };
    let mut cluster = cluster;
    cluster.addons.extend(super::addons::asked(&args.addons)?);
    common::able(before, &cluster)?;
    host_can(ctx, args, driver).await?;
    core::base_images::settle(ctx, &mut cluster, before, args.dry_run).await?;
    if old.is_none() || !changes.lines.is_empty() {
        core::images_can(ctx, &cluster)?;
    }
    let mut warnings: Vec<String> = moved.into_iter().chain(warnings).collect();
    warnings.extend(desired::even(&cluster));
    warnings.extend(core::room(ctx, &cluster, args.force).await?);
    let manifests = input.map(|input| input.manifests()).transpose()?;
    Ok(Wanted { cluster, old, manifest, manifests, warnings, changes })
}

/// What the flags say about all nodes, over what the file says about them.
fn flags_last(mut cluster: Cluster, args: &Args) -> Result<Cluster, Fault> {
    cluster.node_defaults = checks::node_defaults(args)?.over(&cluster.node_defaults);
    Ok(cluster)
}

/// Of a new cluster that is to be made of an image it is the image's, unless it is said.
async fn version(ctx: &Ctx, args: &Args, old: Option<&Cluster>, driver: DriverKind) -> Result<String> {
    let default = || image::default_version().to_owned();
    match (args.kubernetes_version.as_deref(), old) {
        (None | Some(""), Some(old)) => Ok(old.kubernetes_version.clone()),
        (None | Some(""), None) => match checks::node_defaults(args)?.base_image {
            Some(name) => {
                host_can(ctx, args, driver).await?;
                let found = core::base_images::find(ctx, driver, &name, args.dry_run).await?;
                Ok(found.map_or_else(default, |(image, _)| image.manifest.kubernetes))
            }
            None => Ok(default()),
        },
        (Some(asked), _) => Ok(versions::resolve(asked)?),
    }
}

async fn host_can(ctx: &Ctx, args: &Args, driver: DriverKind) -> Result<(), Fault> {
    if !args.force {
        checks::disk(&ctx.home)?;
    }
    if driver == DriverKind::Native {
        checks::root(ctx, driver)?;
    }
    core::preflight(ctx, driver).await
}

fn opts(args: &Args) -> StartOpts {
    StartOpts {
        dry_run: args.dry_run,
        wait_timeout: args.wait_timeout,
        recover_from: args.recover_from.clone(),
        force: args.force,
    }
}

/// `cluster` is what is wanted, and the nodes that still have to go.
async fn make(ctx: &Ctx, args: &Args, wanted: &Wanted, cluster: &Cluster) -> Result<()> {
    ctx.recorder.open(&ctx.home.profile_events(&cluster.name))?;
    messages::starting(ctx, cluster);
    super::fault::lift(ctx, &cluster.name, None).await?;
    if core::pause::is_paused(ctx, cluster).await? {
        let count = core::pause::unpause(ctx, cluster, &[core::pause::ALL.to_owned()]).await?;
        ctx.emit(Event::info(Style::Unpausing, format!("Unpaused {count} containers")));
    }
    if core::start(ctx, cluster, opts(args)).await? == Started::AlreadyRunning {
        tracing::info!("The running cluster does not require reconfiguration");
        messages::already_running(ctx, cluster);
    }
    pending::end(&ctx.home, &cluster.name, |_| true)?;
    common::write_kubeconfig(ctx, cluster, !cluster.keep_context)?;
    for node in &wanted.changes.removed {
        let message = format!("Deleting node {} from cluster {}", cluster.machine(node), cluster.name);
        ctx.emit(Event::info(Style::Deleting, message));
        super::node::remove(ctx, &profile::require(&ctx.home, &ctx.profile)?, node, false).await?;
    }
    super::addons::after_start(ctx, &wanted.cluster).await?;
    messages::pod_network(ctx, cluster);
    messages::done(ctx, cluster);
    Ok(())
}
