//! `addons enable` and `disable`.

use std::time::Duration;

use anyhow::Result;
use bootstrap::addons::catalogue::{self, Addon};
use bootstrap::addons::registry;
use bootstrap::api;
use model::config_file::ConfigFile;
use model::status::{Apiserver, Host};
use model::{Cluster, Fault, Reason};
use serde_json::{Value, json};

use super::{common, find, images};
use crate::core;
use crate::ctx::Ctx;
use crate::report::{Event, Style};
use crate::state::lock::ProfileLock;
use crate::state::profile;

const APPLY: Duration = Duration::from_secs(30);
/// Where minikube's configuration has what the user chose.
const CUSTOM: &str = "CustomAddonImages";

#[derive(Debug, Clone, clap::Args)]
pub struct EnableArgs {
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Other images: NAME=IMAGE; see addons images
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    pub images: Vec<String>,
    /// Other registries of the images: NAME=REGISTRY
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    pub registries: Vec<String>,
    /// Do not look whether the images can be had
    #[arg(long)]
    pub force: bool,
    /// Apply it again, also when it is enabled
    #[arg(long)]
    pub refresh: bool,
}

#[derive(Debug, Clone, clap::Args)]
pub struct DisableArgs {
    #[arg(value_name = "NAME")]
    pub name: String,
}

/// What a cluster can do right now.
enum Up {
    Running(kube::Client),
    Paused,
    No,
}

async fn up(ctx: &Ctx, cluster: &Cluster) -> Result<Up> {
    let seen = core::observe(ctx, cluster).await?;
    if seen.iter().any(|s| s.apiserver == Apiserver::Paused) {
        return Ok(Up::Paused);
    }
    if !seen.iter().any(|s| s.host == Host::Running) {
        return Ok(Up::No);
    }
    Ok(Up::Running(common::healthy_client(ctx, cluster).await?))
}

pub fn enable(ctx: &Ctx, args: &EnableArgs) -> Result<u8> {
    let addon = find(&args.name, Reason::AddonEnable)?;
    let chosen = images::chosen(addon, &args.images, &args.registries)?;
    if !addon.is_available() {
        let message = format!("{} cannot be had here: its images are not fetched by us", addon.name);
        return Err(Fault::new(Reason::AddonEnable, message)
            .advice("Apply its own manifests with kubectl, if the nodes can pull its images")
            .into());
    }
    common::load(ctx)?;
    ctx.run(async {
        let _lock = ProfileLock::acquire(ctx, &ctx.profile).await?;
        let file = profile::require(&ctx.home, &ctx.profile)?;
        let mut cluster = file.cluster.clone();
        cluster.addons.insert(addon.name.to_owned(), true);
        let cluster = &cluster;
        let mut full = chosen.clone();
        match up(ctx, cluster).await? {
            Up::Running(client) => {
                if !args.force {
                    full = images::available(ctx, cluster, addon, chosen).await?;
                }
                for image in full.values() {
                    ctx.emit(Event::info(Style::Option, format!("Using image {image}")));
                }
                make(ctx, cluster, addon, &full, &client).await?;
            }
            Up::Paused => return Err(paused(Reason::AddonEnablePaused, "enabled", addon).into()),
            Up::No => {}
        }
        let custom = !args.images.is_empty() || !args.registries.is_empty();
        record(ctx, &file, addon, true, custom.then_some(&full))?;
        ctx.emit(Event::info(Style::Addons, format!("The '{}' addon is enabled", addon.name)));
        Ok(0)
    })
}

/// As `addons enable` does, where the API answers and the profile is locked.
pub async fn switch_on(ctx: &Ctx, file: &ConfigFile, addon: &Addon, client: &kube::Client) -> Result<()> {
    let custom = custom(file);
    apply(ctx, &file.cluster, addon, &custom, client).await?;
    Ok(record(ctx, file, addon, true, None)?)
}

/// The images that the user chose: NAME=IMAGE.
fn custom(file: &ConfigFile) -> Vec<String> {
    file.raw.get(CUSTOM).and_then(Value::as_object).map_or_else(Vec::new, |map| {
        map.iter().filter_map(|(word, image)| Some(format!("{word}={}", image.as_str()?))).collect()
    })
}

pub fn disable(ctx: &Ctx, args: &DisableArgs) -> Result<u8> {
    let addon = find(&args.name, Reason::AddonUnsupported)?;
    common::load(ctx)?;
    ctx.run(async {
        let _lock = ProfileLock::acquire(ctx, &ctx.profile).await?;
        let file = profile::require(&ctx.home, &ctx.profile)?;
        match up(ctx, &file.cluster).await? {
            // What is not ours to enable is not ours to remove.
            Up::Running(client) if addon.is_available() => {
                unmake(ctx, &file.cluster, addon, &client).await?;
            }
            Up::Paused => return Err(paused(Reason::AddonDisablePaused, "disabled", addon).into()),
            _ => {}
        }
        record(ctx, &file, addon, false, None)?;
        ctx.emit(Event::info(Style::Addons, format!("The '{}' addon is disabled", addon.name)));
        Ok(0)
    })
}

fn paused(reason: Reason, what: &str, addon: &Addon) -> Fault {
    let message = format!("{} cannot be {what} on a paused cluster", addon.name);
    Fault::new(reason, message).advice("To unpause the cluster run: unpause")
}

/// What was applied when the cluster was made needs no second time.
fn record(
    ctx: &Ctx,
    file: &ConfigFile,
    addon: &Addon,
    on: bool,
    custom: Option<&catalogue::Images>,
) -> Result<(), Fault> {
    let mut cluster = file.cluster.clone();
    cluster.addons.insert(addon.name.to_owned(), on);
    let mut raw = file.raw.clone();
    if let Some(custom) = custom {
        let all = raw.entry(CUSTOM).or_insert(Value::Null);
        if !all.is_object() {
            *all = json!({});
        }
        custom.iter().for_each(|(word, image)| all[word] = json!(image));
    }
    profile::save(&ctx.home, &cluster, Some(&raw))
}

/// Those that were enabled while the cluster did not run, or by `--addons`. Failures are warnings: the
/// cluster is there without them.
pub async fn after_start(ctx: &Ctx, cluster: &Cluster) -> Result<()> {
    let (done, wanted) = (ctx.home.profile(&cluster.name).join("addons.applied"), wanted(cluster));
    if wanted.join("\n") == std::fs::read_to_string(&done).unwrap_or_default() {
        return Ok(());
    }
    let Some(client) = core::client(ctx, cluster) else { return Ok(()) };
    let file = profile::require(&ctx.home, &cluster.name)?;
    let custom = custom(&file);
    for addon in catalogue::ADDONS {
        let applied = match cluster.addons.get(addon.name) {
            Some(true) => apply(ctx, cluster, addon, &custom, &client).await,
            Some(false) if addon.is_available() => unmake(ctx, cluster, addon, &client).await,
            _ => Ok(()),
        };
        if let Err(e) = applied {
            ctx.warn(format!("The addon {} could not be made as asked for: {e:#}", addon.name));
        }
    }
    Ok(base::atomic::replace(&done, wanted.join("\n").as_bytes(), 0o600)?)
}

async fn apply(
    ctx: &Ctx,
    cluster: &Cluster,
    addon: &Addon,
    custom: &[String],
    client: &kube::Client,
) -> Result<()> {
    let own = |pair: &&String| {
        pair.split_once('=').is_some_and(|(word, _)| addon.images.iter().any(|(w, _)| *w == word))
    };
    let own: Vec<String> = custom.iter().filter(own).cloned().collect();
    let images = images::available(ctx, cluster, addon, images::chosen(addon, &own, &[])?).await?;
    make(ctx, cluster, addon, &images, client).await
}

/// Its objects, and what is not in the cluster of it.
async fn make(
    ctx: &Ctx,
    cluster: &Cluster,
    addon: &Addon,
    images: &catalogue::Images,
    client: &kube::Client,
) -> Result<()> {
    let is_registry = addon.name == registry::NAME;
    if is_registry {
        core::registry::open(ctx, cluster).await?;
    }
    let port = core::registry::port(&ctx.home, &cluster.name)?;
    api::apply_foreign(client, &addon.objects(images, cluster, port)?, APPLY).await?;
    if is_registry {
        let name = core::registry::answers(ctx, cluster, client).await?;
        let message = format!("Push to {name} on this host; pods use the same name, on every node");
        ctx.emit(Event::info(Style::Option, message));
    }
    Ok(())
}

async fn unmake(ctx: &Ctx, cluster: &Cluster, addon: &Addon, client: &kube::Client) -> Result<()> {
    let port = core::registry::port(&ctx.home, &cluster.name)?;
    let objects = addon.objects(&images::chosen(addon, &[], &[])?, cluster, port)?;
    api::remove(client, &objects, APPLY).await?;
    if addon.name == registry::NAME {
        core::registry::close(ctx, cluster).await?;
    }
    Ok(())
}

/// What differs from a cluster as it is made; empty for most.
fn wanted(cluster: &Cluster) -> Vec<String> {
    let usual = |name: &str| ["default-storageclass", "storage-provisioner"].contains(&name);
    let differs = cluster.addons.iter().filter(|(name, on)| usual(name) != **on);
    differs.map(|(name, on)| format!("{name}={on}")).collect()
}
