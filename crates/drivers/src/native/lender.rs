//! Which image lends the host its programs (nft, iptables): what runs as root beside a cluster is the cluster's.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use image::Store;
use model::{Cluster, Home};

use crate::machine::{Paths, of_home};

/// What its machines are made of, or will be.
pub(crate) fn of_cluster(home: &Home, cluster: &Cluster) -> Result<PathBuf> {
    if let Some(rootfs) = of_machines(home, &cluster.name) {
        return Ok(rootfs);
    }
    let store = Store::new(home.cache());
    let named = cluster.nodes.first().and_then(|node| cluster.config_of(node).base_image);
    let own = match named {
        Some(name) => store.named(&name).ok(),
        None => store.find(&cluster.kubernetes_version)?,
    };
    own.map_or_else(|| any(home), |image| Ok(image.rootfs()))
}

/// Of a cluster of which only the name is known.
pub(crate) fn of_profile(home: &Home, profile: &str) -> Result<PathBuf> {
    of_machines(home, profile).map_or_else(|| any(home), Ok)
}

fn of_machines(home: &Home, profile: &str) -> Option<PathBuf> {
    let all = of_home(home).into_iter().map(|(machine, _)| machine);
    let mut own = all.filter(|m| Paths::new(home, m).profile().as_deref() == Some(profile));
    own.find_map(|machine| rootfs_of(home, &machine))
}

fn rootfs_of(home: &Home, machine: &str) -> Option<PathBuf> {
    Paths::new(home, machine).image_rootfs().ok().filter(|rootfs| rootfs.is_dir())
}

/// One that was built here, rather than one that says of itself that it is the newest.
fn any(home: &Home) -> Result<PathBuf> {
    let images = Store::new(home.cache()).list()?;
    let image = images.iter().find(|image| image.is_built_here()).or(images.first());
    Ok(image.context("no node image is in the store")?.rootfs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn put(cache: &Path, version: &str, imported: bool) -> PathBuf {
        let dir = cache.join(format!("node-images/{version}-x"));
        std::fs::create_dir_all(dir.join("rootfs")).expect("a root");
        let manifest = serde_json::json!({
            "name": format!("{version}-x"), "kubernetes": version, "architecture": "amd64", "components": {},
            "images": [], "built_at": "2026-01-01T00:00:00Z", "size": 0, "files_sha256": "",
        });
        std::fs::write(dir.join("manifest.json"), manifest.to_string()).expect("a manifest");
        if imported {
            std::fs::write(dir.join(".imported"), "").expect("a mark");
        }
        dir.join("rootfs")
    }

    #[test]
    fn a_foreign_image_that_claims_to_be_the_newest_lends_nothing_to_others() {
        let dir = tempfile::tempdir().expect("a directory");
        let home = Home::new(dir.path(), None);
        let foreign = put(home.cache(), "v9.99.9", true);
        assert_eq!(of_profile(&home, "a").expect("the only one"), foreign);
        let (old, new) = (put(home.cache(), "v1.36.4", false), put(home.cache(), "v1.37.1", false));
        assert_eq!(of_profile(&home, "a").expect("an image"), new);
        let machine = home.machine("a");
        std::fs::create_dir_all(&machine).expect("a machine");
        let record = serde_json::json!({
            "DriverName": "native", "Name": "a", "Driver": { "Profile": "a", "ImageRootfs": old },
        });
        std::fs::write(machine.join("config.json"), record.to_string()).expect("a record");
        assert_eq!(of_profile(&home, "a").expect("an image"), old);
        assert_eq!(of_profile(&home, "b").expect("an image"), new);
    }
}
