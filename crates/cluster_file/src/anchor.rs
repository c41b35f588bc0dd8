//! Paths in a file are relative to it; from here on they are whole.

use std::path::Path;

use model::node_config::FileSource;
use model::{Cni, NodeConfig};

use crate::file::ClusterFile;

impl ClusterFile {
    /// `dir` is where the file lies.
    pub fn anchor(&mut self, dir: &Path) {
        if matches!(self.cni.as_deref().map(Cni::parse), Some(Ok(Cni::Manifest(_)))) {
            self.cni.iter_mut().for_each(|path| whole(dir, path));
        }
        self.manifests.iter_mut().for_each(|path| whole(dir, path));
        // One that does not begin like a path is a name.
        self.images.iter_mut().filter(|i| i.starts_with(['.', '/'])).for_each(|path| whole(dir, path));
        let mut config = self.config();
        anchor(&mut config, dir);
        self.set_config(&config);
        for group in &mut self.nodes {
            let mut config = group.config();
            anchor(&mut config, dir);
            group.set_config(&config);
        }
    }
}

fn anchor(config: &mut NodeConfig, dir: &Path) {
    config.mounts.iter_mut().for_each(|mount| whole(dir, &mut mount.host));
    config.binaries.values_mut().for_each(|path| whole(dir, path));
    for file in &mut config.files {
        if let FileSource::Host(path) = &mut file.from {
            whole(dir, path);
        }
    }
}

/// What is no text any more as a whole path stays as it is: then it is not found, and said so.
fn whole(dir: &Path, path: &mut String) {
    if path.contains("://") {
        return;
    }
    if let Some(full) =
        std::path::absolute(dir.join(&*path)).ok().and_then(|p| p.into_os_string().into_string().ok())
    {
        *path = full;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_to_the_file() {
        let text = "apiVersion: manykube.dev/v1\nkind: Cluster\ncni: net.yaml\nmanifests: [a.yaml, 'https://x/y']\n\
                    memory: 3g\nmounts: ['./src:/src:ro']\nnodes:\n- role: control-plane\n- name: w\n  cpus: 1\n  \
                    binaries: {kubelet: ../out/kubelet}\n  files: [{path: /x, source: f}, {path: /y, content: f}]\n";
        let mut file = crate::parse(text).unwrap().file;
        let before = file.clone();
        file.anchor(Path::new("/home/me"));
        assert_eq!(file.cni.as_deref(), Some("/home/me/net.yaml"));
        assert_eq!(file.manifests, ["/home/me/a.yaml", "https://x/y"]);
        assert_eq!(file.config().mounts[0].to_string(), "/home/me/src:/src:ro");
        let worker = file.nodes[1].config();
        assert_eq!(worker.binaries.values().next().unwrap(), "/home/me/../out/kubelet");
        assert_eq!(worker.files[0].from, FileSource::Host("/home/me/f".into()));
        assert_eq!(worker.files[1].from, FileSource::Content("f".into()));
        assert_eq!((file.memory, worker.cpus), (before.memory, Some(1)));
        let mut plain = crate::parse("apiVersion: manykube.dev/v1\nkind: Cluster\ncni: none\n").unwrap().file;
        plain.anchor(Path::new("/x"));
        assert_eq!(plain.cni.as_deref(), Some("none"));
    }
}
