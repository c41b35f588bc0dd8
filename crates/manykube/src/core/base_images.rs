//! Node images that a cluster names itself (`--base-image`): names of the store, and references to registries, which
//! are pulled and remembered with the digest that they stood for.

use std::collections::BTreeMap;

use anyhow::Result;
use image::registry::{Pinned, Reference, RegistryError};
use image::{NodeImage, Store};
use model::{Cluster, DriverKind, Fault, Home, Reason};

use super::{driver, layers};
use crate::ctx::Ctx;

/// Those that a cluster and its nodes name.
fn named(cluster: &Cluster) -> impl Iterator<Item = &String> {
    let nodes = cluster.nodes.iter().map(|n| &n.config);
    nodes.chain([&cluster.node_defaults]).filter_map(|c| c.base_image.as_ref())
}

fn named_mut(cluster: &mut Cluster) -> impl Iterator<Item = &mut String> {
    let nodes = cluster.nodes.iter_mut().map(|n| &mut n.config);
    nodes.chain([&mut cluster.node_defaults]).filter_map(|c| c.base_image.as_mut())
}

/// What a tag stood for when a node was made of it, it stands for as long as the node is there.
pub fn keep(cluster: &mut Cluster, before: &Cluster) {
    for image in named_mut(cluster) {
        if let Some(known) = named(before).find(|known| Pinned::came_from(known, image)) {
            image.clone_from(known);
        }
    }
}

/// Brings what is named and not there, and says exactly what it is. `dry`: only what is certain without it.
pub async fn settle(ctx: &Ctx, cluster: &mut Cluster, before: Option<&Cluster>, dry: bool) -> Result<()> {
    if let Some(before) = before {
        keep(cluster, before);
    }
    let new = |name: &&String| before.is_none_or(|before| !named(before).any(|known| known == *name));
    let asked: Vec<String> = named(cluster).filter(new).cloned().collect();
    let mut settled = BTreeMap::new();
    for name in asked {
        if settled.contains_key(&name) {
            continue;
        }
        if let Some((image, pinned)) = find(ctx, cluster.driver, &name, dry).await? {
            fits(&name, &image, cluster)?;
            settled.insert(name, pinned);
        }
    }
    for name in named_mut(cluster) {
        if let Some(pinned) = settled.get(name) {
            name.clone_from(pinned);
        }
    }
    Ok(())
}

/// The image of this name, pulled if need be, and what the profile is to remember. `None` when only that would tell.
pub async fn find(ctx: &Ctx, kind: DriverKind, name: &str, dry: bool) -> Result<Option<(NodeImage, String)>> {
    let store = Store::new(ctx.home.cache());
    if !Reference::looks_like_one(name) {
        let unknown = |e: anyhow::Error| {
            let advice =
                format!("See '{0} node-image list', or name one of a registry: HOST/NAME:TAG", ctx.tool);
            Fault::new(Reason::ImageUnusable, sentence(&e.to_string())).advice(advice)
        };
        return Ok(Some((store.get(name).map_err(unknown)?, name.to_owned())));
    }
    let failed = |error| layers::cannot("pulled", name, error);
    let reference: Reference = name.parse().map_err(|e: RegistryError| failed(e.into()))?;
    if let Some(digest) = reference.digest()
        && let Some(image) = store.by_digest(digest)?
    {
        return Ok(Some((image, name.to_owned())));
    }
    if dry {
        return Ok(None);
    }
    let driver = driver(ctx, kind);
    let phase = format!("Pulling the node image {name}");
    let work = layers::shown(ctx, &phase, |progress| driver.pull_image(&reference, progress));
    let (image, digest) = work.await.map_err(failed)?;
    Ok(Some((image, Pinned::of(name, &digest))))
}

/// All that the cluster puts on its nodes is of one version.
fn fits(name: &str, image: &NodeImage, cluster: &Cluster) -> Result<(), Fault> {
    let (has, wanted) = (&image.manifest.kubernetes, &cluster.kubernetes_version);
    if has == wanted {
        return Ok(());
    }
    let message = format!("The node image {name} is of Kubernetes {has}, and the cluster of {wanted}");
    Err(Fault::new(Reason::Usage, message)
        .advice(format!("Use a node image of {wanted}, or a cluster of --kubernetes-version={has}")))
}

/// Of those that the profile names: what the store has not got any more.
pub fn missing(home: &Home, cluster: &Cluster) -> Vec<String> {
    let store = Store::new(home.cache());
    let mut missing: Vec<String> =
        named(cluster).filter(|name| store.named(name).is_err()).cloned().collect();
    missing.sort();
    missing.dedup();
    missing
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::start::desired::tests::sample;

    #[test]
    fn a_tag_stays_what_it_was() {
        let mut before = sample("demo");
        before.node_defaults.base_image = Some("r.example/node:v1@sha256:ab".into());
        let mut after = before.clone();
        after.node_defaults.base_image = Some("r.example/node:v1".into());
        after.nodes[0].config.base_image = Some("r.example/node:v2".into());
        keep(&mut after, &before);
        assert_eq!(after.node_defaults.base_image, before.node_defaults.base_image);
        assert_eq!(after.nodes[0].config.base_image.as_deref(), Some("r.example/node:v2"));
    }
}
