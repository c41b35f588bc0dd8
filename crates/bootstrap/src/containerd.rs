//! containerd's configuration (version 3, containerd 2.x).

use model::node_spec::NodeFile;

use crate::paths;

pub fn file(pause_image: &str) -> NodeFile {
    NodeFile::new(paths::CONTAINERD_CONFIG, 0o644, config(pause_image))
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
    fn configuration() {
        insta::assert_snapshot!(super::config("registry.k8s.io/pause:3.10.2"));
    }
}
