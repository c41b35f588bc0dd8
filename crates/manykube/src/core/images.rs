//! The node image as part of a start.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use image::{BuildEvent, BuildOptions, Damaged, NodeImage, Store};
use model::{Cluster, Fault, Home, Node, Reason};

use super::channel::Machines;
use super::{base_images, layers, machines};
use crate::ctx::Ctx;
use crate::report::{Event, Style};

/// Looked at before anything is changed.
pub fn usable(ctx: &Ctx, cluster: &Cluster) -> Result<()> {
    for part in missing(&ctx.home, cluster)? {
        if let Part::Image(version) | Part::Programs(version) = &part {
            can_build(ctx, version)?;
        }
    }
    for image in roots(&ctx.home, cluster) {
        image.check().map_err(damaged)?;
        drivers::docker::owns(&image)?;
    }
    Ok(())
}

/// The images that nodes of the cluster are made of, as far as the store has them.
fn roots(home: &Home, cluster: &Cluster) -> Vec<NodeImage> {
    let named: BTreeMap<Option<String>, &Node> =
        cluster.nodes.iter().map(|n| (cluster.config_of(n).base_image, n)).collect();
    named.into_values().filter_map(|n| machines::root_image(home, cluster, n).ok()).collect()
}

/// Is all there that nodes are made of, also where the driver wants it?
pub async fn present(home: &Home, cluster: &Cluster, driver: &Machines) -> Result<bool> {
    if !missing(home, cluster)?.is_empty() {
        return Ok(false);
    }
    for image in roots(home, cluster) {
        if !driver.has_image(&image).await? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn can_build(ctx: &Ctx, version: &str) -> Result<(), Fault> {
    let missing = image::missing_tools();
    if missing.is_empty() {
        return Ok(());
    }
    let packages: Vec<&str> = missing.iter().map(|t| t.package).collect();
    let message = format!(
        "There is no node image of Kubernetes {version}, and this host lacks what builds one: {}",
        packages.join(", ")
    );
    let advice = format!(
        "Run 'apt-get install {}', or take an image from a file: {} node-image import FILE",
        packages.join(" "),
        ctx.tool
    );
    Err(Fault::new(Reason::ProviderNotFound, message).advice(advice))
}

/// What the nodes of a cluster are made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// The image of the cluster's version.
    Image(String),
    /// Of nodes that run another version.
    Programs(String),
    /// One that the cluster or a node names.
    Named(String),
}

pub fn parts(cluster: &Cluster) -> Vec<Part> {
    let own = &cluster.kubernetes_version;
    let usual = cluster.nodes.iter().any(|n| cluster.config_of(n).base_image.is_none());
    let image = usual.then(|| Part::Image(own.clone()));
    let versions: BTreeSet<&String> = cluster.nodes.iter().map(|n| &n.kubernetes_version).collect();
    let others = versions.into_iter().filter(|v| *v != own).cloned().map(Part::Programs);
    image.into_iter().chain(others).collect()
}

/// Those that the store does not have.
pub fn missing(home: &Home, cluster: &Cluster) -> Result<Vec<Part>> {
    let store = Store::new(home.cache());
    let mut missing = Vec::new();
    for part in parts(cluster) {
        let there = match &part {
            Part::Named(_) => true,
            Part::Image(version) => store.find(version)?.is_some(),
            Part::Programs(version) => store.node_programs(version)?.is_some(),
        };
        if !there {
            missing.push(part);
        }
    }
    missing.extend(base_images::missing(home, cluster).into_iter().map(Part::Named));
    Ok(missing)
}

/// Builds or pulls what the store has not got, and brings it to where the driver wants it.
pub async fn provide(ctx: &Ctx, cluster: &Cluster, driver: &Machines) -> Result<()> {
    for part in missing(&ctx.home, cluster)? {
        match part {
            Part::Named(name) => drop(base_images::find(ctx, cluster.driver, &name, false).await?),
            Part::Image(version) => build(ctx, &version, false).await?,
            Part::Programs(version) => build(ctx, &version, true).await?,
        }
    }
    for image in roots(&ctx.home, cluster) {
        if !driver.has_image(&image).await? {
            let phase = format!("Bringing the node image {} to the engine", image.name);
            layers::shown(ctx, &phase, |progress| driver.bring_image(&image, progress)).await?;
        }
    }
    Ok(())
}

async fn build(ctx: &Ctx, version: &str, programs: bool) -> Result<()> {
    let store = Store::new(ctx.home.cache());
    can_build(ctx, version)?;
    let log = ctx.home.logs().join(format!("node-image-{version}.log"));
    let options = BuildOptions { log: Some(log), ..BuildOptions::default() };
    if programs {
        image::build_node_programs(&store, version, options, &|e| show(ctx, e)).await.map(drop)
    } else {
        image::build(&store, version, options, &|e| show(ctx, e)).await.map(drop)
    }
}

fn show(ctx: &Ctx, event: BuildEvent) {
    if let BuildEvent::Finished { component, elapsed, cached: false } = event {
        let message = format!("{component} built in {:.0} s", elapsed.as_secs_f32());
        ctx.emit(Event::info(Style::Option, message));
    }
}

/// A node must not be made of an image that is not what was built.
pub fn damaged(damage: Damaged) -> Fault {
    let advice = format!("Run 'manykube node-image rm {}', then build or import it again", damage.image);
    Fault::new(Reason::ImageUnusable, damage.to_string()).advice(advice)
}
