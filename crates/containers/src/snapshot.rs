//! Unpacked layers: made by containerd from a blob, or taken from a node that has them.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::Node;
use crate::containerd::Client;
use crate::containerd::messages::Mount;
use crate::oci::Descriptor;

pub const NAME: &str = "overlayfs";

fn key(name: &str) -> String {
    format!("manykube-{} {name}", uuid::Uuid::new_v4())
}

/// The layer `name` on top of `parent`, from its blob.
pub async fn unpack(
    client: &Client,
    layer: &Descriptor,
    diff_id: &str,
    name: &str,
    parent: &str,
) -> Result<()> {
    if client.has_snapshot(name).await? {
        return Ok(());
    }
    let key = key(name);
    let mounts = client.prepare(&key, parent).await?;
    let unpacked = match client.apply(layer, mounts).await {
        Ok(digest) if digest == diff_id => Ok(()),
        Ok(digest) => Err(anyhow::anyhow!("its content is {digest}, but should be {diff_id}")),
        Err(e) => Err(e.into()),
    };
    if let Err(e) = unpacked {
        let _ = client.remove_snapshot(&key).await;
        return Err(e).with_context(|| format!("unpack the layer {}", layer.digest));
    }
    Ok(client.commit(name, &key).await?)
}

/// The layer `name` on top of `parent`, by links to the files that another node of this host has. `client`
/// is the target's, under a lease.
pub async fn link(from: &Node, to: &Node, client: &Client, name: &str, parent: &str) -> Result<()> {
    if client.has_snapshot(name).await? {
        return Ok(());
    }
    let view = key(name);
    let source = from.client.view(&view, name).await.with_context(|| format!("node {}", from.name))?;
    let source = lower(&source).and_then(|path| from.on_host(&path));
    let key = key(name);
    let filled = async {
        let target = to.on_host(&upper(&client.prepare(&key, parent).await?)?)?;
        let source: PathBuf = source?;
        tokio::task::spawn_blocking(move || image::link_tree(&source, &target)).await??;
        Ok(client.commit(name, &key).await?)
    };
    let filled: Result<()> = filled.await;
    if filled.is_err() {
        let _ = client.remove_snapshot(&key).await;
    }
    from.client.remove_snapshot(&view).await?;
    filled
}

/// The directory of a finished layer, as its view is mounted: alone, or on top of others.
fn lower(mounts: &[Mount]) -> Result<String> {
    directory(mounts, "lowerdir=")
}

/// The directory of a layer that is to be filled.
fn upper(mounts: &[Mount]) -> Result<String> {
    directory(mounts, "upperdir=")
}

fn directory(mounts: &[Mount], option: &str) -> Result<String> {
    let [mount] = mounts else { bail!("containerd mounts a layer in {} steps", mounts.len()) };
    if mount.kind == "bind" {
        return Ok(mount.source.clone());
    }
    let dirs = mount.options.iter().find_map(|o| o.strip_prefix(option));
    let dirs = dirs.with_context(|| format!("containerd mounts a layer without {option}"))?;
    Ok(dirs.split(':').next().unwrap_or(dirs).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_layers_are() {
        let mount = |kind: &str, source: &str, options: &[&str]| Mount {
            kind: kind.into(),
            source: source.into(),
            target: String::new(),
            options: options.iter().map(|o| (*o).to_owned()).collect(),
        };
        let alone = [mount("bind", "/var/s/1/fs", &["ro", "rbind"])];
        assert_eq!(lower(&alone).unwrap(), "/var/s/1/fs");
        let many = [mount("overlay", "overlay", &["index=off", "lowerdir=/var/s/3/fs:/var/s/1/fs"])];
        assert_eq!(lower(&many).unwrap(), "/var/s/3/fs");
        let new =
            [mount("overlay", "overlay", &["workdir=/w", "upperdir=/var/s/4/fs", "lowerdir=/var/s/3/fs"])];
        assert_eq!(upper(&new).unwrap(), "/var/s/4/fs");
        assert!(upper(&[]).is_err());
    }
}
