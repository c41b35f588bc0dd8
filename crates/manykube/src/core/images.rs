//! The node image as part of a start.

use std::collections::BTreeSet;

use anyhow::Result;
use image::{BuildEvent, BuildOptions, Damaged, Store};
use model::{Cluster, Fault, Home, Reason};

use crate::ctx::Ctx;
use crate::report::{Event, Style};

/// Looked at before anything is changed.
pub fn usable(ctx: &Ctx, cluster: &Cluster) -> Result<()> {
    for part in missing(&ctx.home, cluster)? {
        let (Part::Image(version) | Part::Programs(version)) = &part;
        can_build(ctx, version)?;
    }
    match Store::new(ctx.home.cache()).find(&cluster.kubernetes_version)? {
        Some(image) => image.check().map_err(|damage| damaged(damage).into()),
        None => Ok(()),
    }
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
}

pub fn parts(cluster: &Cluster) -> Vec<Part> {
    let own = &cluster.kubernetes_version;
    let versions: BTreeSet<&String> = cluster.nodes.iter().map(|n| &n.kubernetes_version).collect();
    let others = versions.into_iter().filter(|v| *v != own).cloned().map(Part::Programs);
    [Part::Image(own.clone())].into_iter().chain(others).collect()
}

/// Those that the store does not have.
pub fn missing(home: &Home, cluster: &Cluster) -> Result<Vec<Part>> {
    let store = Store::new(home.cache());
    let mut missing = Vec::new();
    for part in parts(cluster) {
        let there = match &part {
            Part::Image(version) => store.find(version)?.is_some(),
            Part::Programs(version) => store.node_programs(version)?.is_some(),
        };
        if !there {
            missing.push(part);
        }
    }
    Ok(missing)
}

pub async fn build_missing(ctx: &Ctx, cluster: &Cluster) -> Result<()> {
    let store = Store::new(ctx.home.cache());
    for part in missing(&ctx.home, cluster)? {
        let (Part::Image(version) | Part::Programs(version)) = &part;
        can_build(ctx, version)?;
        let log = ctx.home.logs().join(format!("node-image-{version}.log"));
        let options = BuildOptions { log: Some(log), jobs: None };
        match part {
            Part::Image(_) => image::build(&store, version, options, &|e| show(ctx, e)).await.map(drop)?,
            Part::Programs(_) => {
                image::build_node_programs(&store, version, options, &|e| show(ctx, e)).await?;
            }
        }
    }
    Ok(())
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
