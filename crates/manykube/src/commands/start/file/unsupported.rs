//! What a file can say and no part of manykube does yet. Said, with its place; never passed over.

use cluster_file::{Parsed, Path, Problem, Step};
use model::Cluster;

/// Keys that both the cluster and a group have.
macro_rules! of_nodes {
    ($at:expr, $of:expr) => {{
        let of = $of;
        let runtime = of.container_runtime.as_deref().is_some_and(|r| r != "containerd");
        [
            ("containerRuntime", runtime),
            ("baseImage", of.base_image.is_some()),
            ("labels", !of.labels.is_empty()),
            ("taints", !of.taints.is_empty()),
            ("extraConfig", !of.extra_config.0.is_empty()),
            ("featureGates", !of.feature_gates.is_empty()),
            ("mounts", !of.mounts.is_empty()),
            ("ports", !of.ports.is_empty()),
            ("binaries", !of.binaries.is_empty()),
            ("files", !of.files.is_empty()),
            ("patches", of.patches != Default::default()),
        ]
        .map(|(key, said)| (key, said, $at))
    }};
}

pub fn unsupported(parsed: &Parsed, base: &Cluster) -> Vec<Problem> {
    let file = &parsed.file;
    let addons = file.addons.iter().flatten().any(|(name, on)| base.addons.get(name).unwrap_or(&false) != on);
    let mut found: Vec<(&str, bool, Path)> = of_nodes!(Path::new(), file).into();
    found.extend([
        ("kubeProxyMode", file.networking.kube_proxy_mode.is_some(), vec![Step::from("networking")]),
        ("addons", addons, Path::new()),
        ("manifests", !file.manifests.is_empty(), Path::new()),
        ("images", !file.images.is_empty(), Path::new()),
    ]);
    for (index, group) in file.nodes.iter().enumerate() {
        let at = || vec![Step::from("nodes"), Step::from(index)];
        found.extend(of_nodes!(at(), group));
        let version =
            group.kubernetes_version.is_some() && group.kubernetes_version != file.kubernetes_version;
        found.extend([("kubernetesVersion", version, at()), ("diskSize", group.disk_size.is_some(), at())]);
    }
    let problem = |(key, _, mut at): (&str, bool, Path)| {
        at.push(Step::from(key));
        parsed.problem(&at, format!("not supported yet: {key}"))
    };
    found.into_iter().filter(|(_, said, _)| *said).map(problem).collect()
}
