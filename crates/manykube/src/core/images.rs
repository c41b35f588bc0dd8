//! The node image as part of a start.

use anyhow::Result;
use image::{BuildEvent, BuildOptions, Damaged, Store};
use model::{Cluster, Fault, Home, Reason};

use crate::ctx::Ctx;
use crate::report::{Event, Style};

/// Looked at before anything is changed.
pub fn usable(ctx: &Ctx, version: &str) -> Result<()> {
    match Store::new(ctx.home.cache()).find(version)? {
        Some(image) => image.check().map_err(|damage| damaged(damage).into()),
        None => can_build(ctx, version).map_err(Into::into),
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

/// All versions of Kubernetes that a cluster runs.
pub fn versions(cluster: &Cluster) -> Vec<String> {
    let mut versions: Vec<String> = cluster.nodes.iter().map(|n| n.kubernetes_version.clone()).collect();
    versions.push(cluster.kubernetes_version.clone());
    versions.sort();
    versions.dedup();
    versions
}

/// Those of them that the store does not have.
pub fn missing(home: &Home, cluster: &Cluster) -> Result<Vec<String>> {
    let images = Store::new(home.cache()).list()?;
    let there = |version: &String| images.iter().any(|i| i.manifest.kubernetes == *version);
    Ok(versions(cluster).into_iter().filter(|v| !there(v)).collect())
}

pub async fn build_missing(ctx: &Ctx, cluster: &Cluster) -> Result<()> {
    for version in missing(&ctx.home, cluster)? {
        build(ctx, &version).await?;
    }
    Ok(())
}

/// Builds the image of a version that is not in the store.
async fn build(ctx: &Ctx, version: &str) -> Result<()> {
    can_build(ctx, version)?;
    let options =
        BuildOptions { log: Some(ctx.home.logs().join(format!("node-image-{version}.log"))), jobs: None };
    let show = |event: BuildEvent| {
        if let BuildEvent::Finished { component, elapsed, cached: false } = event {
            ctx.emit(Event::info(
                Style::Option,
                format!("{component} built in {:.0} s", elapsed.as_secs_f32()),
            ));
        }
    };
    image::build(&Store::new(ctx.home.cache()), version, options, &show).await.map(drop)
}

/// A node must not be made of an image that is not what was built.
pub fn damaged(damage: Damaged) -> Fault {
    let advice = format!("Run 'manykube node-image rm {}', then build or import it again", damage.image);
    Fault::new(Reason::ImageUnusable, damage.to_string()).advice(advice)
}
