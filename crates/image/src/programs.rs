//! What a node runs itself and may run in another version than its cluster's.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::clone::{CONTAINERD, LAYERS};
use crate::store::{NodeImage, Store};

/// On the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodePrograms {
    pub kubelet: PathBuf,
    pub kube_proxy: PathBuf,
}

impl Store {
    /// Those of a version: an image's, or such as were built alone.
    pub fn node_programs(&self, version: &str) -> Result<Option<NodePrograms>> {
        if let Some(image) = self.find(version)? {
            let (kubelet, kube_proxy) = (image.rootfs().join("usr/bin/kubelet"), kube_proxy_of(&image)?);
            return Ok(Some(NodePrograms { kubelet, kube_proxy }));
        }
        let dir = self.programs_dir(version);
        let alone = NodePrograms { kubelet: dir.join("kubelet"), kube_proxy: dir.join("kube-proxy") };
        Ok(Some(alone).filter(|p| p.kubelet.is_file() && p.kube_proxy.is_file()))
    }

    fn programs_dir(&self, version: &str) -> PathBuf {
        self.cache.join("kubelets").join(version)
    }

    /// Other names for programs in the cache of components, which are known by what they were built from.
    pub(crate) fn keep_programs(&self, version: &str, from: &Path, names: &[&str]) -> Result<()> {
        let dir = self.programs_dir(version);
        fs_err::create_dir_all(&dir)?;
        for name in names {
            let new = dir.join(format!("{name}.new"));
            let _ = std::fs::remove_file(&new);
            fs_err::hard_link(from.join(name), &new)?;
            fs_err::rename(&new, dir.join(name))?;
        }
        Ok(())
    }
}

/// It is not among the image's own files, only in the layer of a container image that lies in it unpacked.
fn kube_proxy_of(image: &NodeImage) -> Result<PathBuf> {
    let layers = image.rootfs().join(CONTAINERD).join(LAYERS);
    let programs = fs_err::read_dir(layers)?.flatten().map(|l| l.path().join("fs/usr/local/bin/kube-proxy"));
    programs.into_iter().find(|p| p.is_file()).with_context(|| format!("no kube-proxy is in {}", image.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_or_none() {
        let (cache, built) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let store = Store::new(cache.path());
        for name in ["kubelet", "kube-proxy"] {
            std::fs::write(built.path().join(name), name).unwrap();
        }
        store.keep_programs("v1.36.4", built.path(), &["kubelet"]).unwrap();
        assert_eq!(store.node_programs("v1.36.4").unwrap(), None);
        store.keep_programs("v1.36.4", built.path(), &["kubelet", "kube-proxy"]).unwrap();
        let programs = store.node_programs("v1.36.4").unwrap().unwrap();
        assert_eq!(std::fs::read(programs.kube_proxy).unwrap(), b"kube-proxy");
    }
}
