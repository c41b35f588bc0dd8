//! containerd's configuration (version 3, containerd 2.x).

use anyhow::{Context, Result};
use model::node_spec::NodeFile;
use toml_edit::{DocumentMut, Item, TableLike};

use crate::paths;

/// With the user's patches, one after the other.
pub fn file(pause_image: &str, patches: &[String]) -> Result<NodeFile> {
    let ours = config(pause_image);
    let text = if patches.is_empty() { ours } else { patched(&ours, patches)? };
    Ok(NodeFile::new(paths::CONTAINERD_CONFIG, 0o644, text))
}

/// Can these be read?
pub fn check(patches: &[String]) -> Result<()> {
    patched("", patches).map(drop)
}

fn patched(ours: &str, patches: &[String]) -> Result<String> {
    let mut document: DocumentMut = ours.parse().context("read containerd's configuration")?;
    for patch in patches {
        let patch: DocumentMut = patch.parse().context("read a patch of containerd's configuration")?;
        merge(document.as_table_mut(), patch.as_table());
    }
    Ok(document.to_string())
}

/// Tables are merged, all else is replaced.
fn merge(into: &mut dyn TableLike, from: &dyn TableLike) {
    for (key, value) in from.iter() {
        match (into.get_mut(key).and_then(Item::as_table_like_mut), value.as_table_like()) {
            (Some(old), Some(new)) => merge(old, new),
            _ => {
                into.insert(key, value.clone());
            }
        }
    }
}

fn config(pause_image: &str) -> String {
    format!(
        r#"version = 3

[plugins."io.containerd.cri.v1.images"]
  snapshotter = "overlayfs"
  # Layers are kept, so that an image can be exported or copied to another node.
  discard_unpacked_layers = false
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "{pause_image}"
  [plugins."io.containerd.cri.v1.images".registry]
    config_path = "/etc/containerd/certs.d"

[plugins."io.containerd.cri.v1.runtime"]
  # A node may lack CAP_SYS_RESOURCE: it cannot lower a score below its own.
  restrict_oom_score_adj = true
  # It asks every container each second, for the sake of one figure that nobody reads so often: a tenth of
  # what an idle node costs.
  stats_collect_period = "10s"
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["/opt/cni/bin"]
    conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.cri.v1.runtime".containerd]
    default_runtime_name = "runc"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
        # No systemd in a node.
        SystemdCgroup = false
"#
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn patches_are_merged_by_table() {
        let patch = "[plugins.\"io.containerd.cri.v1.images\"]\nsnapshotter = \"native\"\n\
                     [plugins.\"io.containerd.cri.v1.runtime\".containerd.runtimes.crun]\nruntime_type = \"x\"\n\
                     [debug]\nlevel = \"debug\"\n";
        let text = super::patched(&super::config("p:1"), &[patch.into()]).unwrap();
        let document: super::DocumentMut = text.parse().unwrap();
        let images = &document["plugins"]["io.containerd.cri.v1.images"];
        assert_eq!(images["snapshotter"].as_str(), Some("native"));
        assert_eq!(images["pinned_images"]["sandbox"].as_str(), Some("p:1"));
        let runtimes = &document["plugins"]["io.containerd.cri.v1.runtime"]["containerd"]["runtimes"];
        assert_eq!(runtimes["runc"]["runtime_type"].as_str(), Some("io.containerd.runc.v2"));
        assert_eq!(runtimes["crun"]["runtime_type"].as_str(), Some("x"));
        assert_eq!(document["debug"]["level"].as_str(), Some("debug"));
        assert!(super::patched("", &["a = ".into()]).is_err());
    }

    #[test]
    fn configuration() {
        insta::assert_snapshot!(super::config("registry.k8s.io/pause:3.10.2"));
    }
}
