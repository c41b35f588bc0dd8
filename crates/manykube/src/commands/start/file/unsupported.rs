//! What a file can say and no part of manykube does yet. Said, with its place; never passed over.

use cluster_file::{Parsed, Path, Problem, Step};
use model::Cluster;
use model::cluster::ProxyMode;

/// Keys that both the cluster and a group have.
macro_rules! of_nodes {
    ($at:expr, $of:expr) => {{
        let of = $of;
        let runtime = of.container_runtime.as_deref().is_some_and(|r| r != "containerd");
        [("containerRuntime", runtime), ("ports", !of.ports.is_empty())].map(|(key, said)| (key, said, $at))
    }};
}

pub fn unsupported(parsed: &Parsed, base: &Cluster) -> Vec<Problem> {
    let file = &parsed.file;
    let addons = file.addons.iter().flatten().any(|(name, on)| base.addons.get(name).unwrap_or(&false) != on);
    let mut found: Vec<(&str, bool, Path)> = of_nodes!(Path::new(), file).into();
    found.extend([
        (
            "kubeProxyMode",
            matches!(file.networking.kube_proxy_mode, Some(ProxyMode::Ipvs | ProxyMode::None)),
            vec![Step::from("networking")],
        ),
        ("addons", addons, Path::new()),
    ]);
    for (index, group) in file.nodes.iter().enumerate() {
        let at = || vec![Step::from("nodes"), Step::from(index)];
        found.extend(of_nodes!(at(), group));
    }
    let problem = |(key, _, mut at): (&str, bool, Path)| {
        at.push(Step::from(key));
        parsed.problem(&at, format!("not supported yet: {key}"))
    };
    found.into_iter().filter(|(_, said, _)| *said).map(problem).collect()
}
