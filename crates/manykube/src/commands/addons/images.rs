//! Which images an addon is made of here, and whether they can be had.

use std::time::Duration;

use anyhow::Result;
use bootstrap::addons::catalogue::{Addon, Images};
use bootstrap::registry::{Reference, can_pull};
use model::{Cluster, Fault, Reason};

use crate::core;
use crate::ctx::Ctx;

const PATIENCE: Duration = Duration::from_secs(5);

/// `Word=image,…` over the defaults; registries replace the first part of a name.
pub fn chosen(addon: &Addon, images: &[String], registries: &[String]) -> Result<Images, Fault> {
    let words: Vec<&str> = addon.images.iter().map(|(word, _)| *word).collect();
    let mut all: Images = addon.images.iter().map(|(w, i)| ((*w).to_owned(), (*i).to_owned())).collect();
    for (flag, list) in [("--images", images), ("--registries", registries)] {
        for pair in list.iter().filter(|p| !p.is_empty()) {
            let known =
                pair.split_once('=').filter(|(word, value)| words.contains(word) && !value.is_empty());
            let Some((word, value)) = known else {
                let fault = Fault::new(Reason::Usage, format!("{flag}: {pair:?} is not NAME=VALUE"));
                return Err(fault.advice(format!("{}'s images: {}", addon.name, words.join(", "))));
            };
            let image = match flag {
                "--images" => value.to_owned(),
                _ => elsewhere(all.get(word).map_or("", String::as_str), value),
            };
            all.insert(word.to_owned(), image);
        }
    }
    Ok(all)
}

fn elsewhere(image: &str, registry: &str) -> String {
    let rest = image.split_once('/').map_or(image, |(_, rest)| rest);
    format!("{}/{rest}", registry.trim_end_matches('/'))
}

/// Full names of images that are in the nodes or can be pulled; a name without tag means the one that is there.
pub async fn available(ctx: &Ctx, cluster: &Cluster, addon: &Addon, chosen: Images) -> Result<Images> {
    let mut there = core::images_of(ctx, &cluster.kubernetes_version)?;
    there.extend(core::images_in(ctx, cluster).await?);
    let mut all = Images::new();
    for (word, image) in chosen {
        let full = match there.iter().find(|i| **i == image || i.starts_with(&format!("{image}:"))) {
            Some(full) => full.clone(),
            None => pull(addon, &image).await?,
        };
        all.insert(word, full);
    }
    Ok(all)
}

async fn pull(addon: &Addon, image: &str) -> Result<String, Fault> {
    let unavailable = |why: String| {
        let message =
            format!("the image {image} of {} is not in the nodes and cannot be had: {why}", addon.name);
        Fault::new(Reason::AddonEnable, message)
            .advice("Load it with 'image load', or name another one with --images")
    };
    let reference =
        Reference::parse(image).ok_or_else(|| unavailable("its name has no registry and tag".to_owned()))?;
    can_pull(&reference, PATIENCE).await.map_err(|e| unavailable(e.to_string()))?;
    Ok(image.to_owned())
}

#[cfg(test)]
mod tests {
    use bootstrap::addons::catalogue::find;

    use super::*;

    #[test]
    fn images_are_replaced_by_word() {
        let addon = find("metrics-server").expect("an addon");
        let with = |images: &[&str], registries: &[&str]| {
            let owned = |l: &[&str]| l.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
            chosen(addon, &owned(images), &owned(registries)).map(|i| i["MetricsServer"].clone())
        };
        assert!(with(&[], &[]).expect("images").starts_with("registry.k8s.io/metrics-server/"));
        assert_eq!(with(&["MetricsServer=r.example/ms:1"], &[]).expect("images"), "r.example/ms:1");
        assert!(
            with(&[], &["MetricsServer=r.example:5000"])
                .expect("images")
                .starts_with("r.example:5000/metrics-server/")
        );
        for bad in ["MetricsServer", "Frob=x", "MetricsServer="] {
            assert_eq!(with(&[bad], &[]).map_err(|f| f.reason), Err(Reason::Usage), "{bad}");
        }
    }
}
