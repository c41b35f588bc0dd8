//! What no single value shows: names that are there twice, networks that overlap, a cluster without
//! control plane.

mod lists;
mod networks;
mod nodes;
mod ports;

use crate::file::ClusterFile;
use crate::yaml::Path;

/// Something wrong, and where in the typed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub path: Path,
    pub message: String,
    /// The other of two that cannot both be.
    pub first: Option<Path>,
}

impl Finding {
    pub fn new(path: Path, message: impl Into<String>) -> Finding {
        Finding { path, message: message.into(), first: None }
    }

    pub fn with(mut self, first: Path) -> Finding {
        self.first = Some(first);
        self
    }
}

pub fn check(file: &ClusterFile) -> Vec<Finding> {
    // What is too long is not looked into: the other checks may take time that grows with it.
    let long = [lists::lengths(file), nodes::counts(file)].concat();
    if !long.is_empty() {
        return long;
    }
    [lists::twice(file), nodes::names(file), nodes::roles(file), networks::check(file), ports::check(file)]
        .concat()
}

#[cfg(test)]
mod tests {
    use crate::parse;

    /// The lines and messages that are wrong in the file with this body.
    fn wrong(body: &str) -> Vec<(usize, usize, String)> {
        let text = format!("apiVersion: manykube.dev/v1\nkind: Cluster\n{body}");
        let Err(problems) = parse(&text) else { return Vec::new() };
        let at = |p: &crate::Problem| (p.position().line, p.position().column, p.message.clone());
        problems.list().iter().map(at).collect()
    }

    #[test]
    fn each_check_points_at_its_place() {
        for (body, line, column, part) in [
            ("nodes: [{role: worker}]\n", 3, 1, "no control plane"),
            ("nodes:\n- role: control-plane\n- name: a\n- name: a\n", 6, 9, "two nodes are named \"a\""),
            (
                "nodes:\n- role: control-plane\n- namePrefix: a\n  count: 2\n- name: a2\n",
                7,
                9,
                "two nodes are named \"a2\"",
            ),
            ("nodes:\n- role: control-plane\n  name: a\n  count: 2\n", 6, 10, "2 nodes cannot all be named"),
            (
                "nodes:\n- role: control-plane\n  name: a\n  namePrefix: b\n",
                6,
                15,
                "either name or namePrefix",
            ),
            ("nodes:\n- role: control-plane\n  count: 200\n- count: 200\n", 6, 10, "400 nodes"),
            ("nodes:\n- role: control-plane\n  cpus: 1\n", 5, 9, "at least 2 CPUs"),
            ("memory: 1g\n", 3, 9, "at least 1800 MiB"),
            (
                "kubernetesVersion: v1.37.1\nnodes:\n- role: control-plane\n- kubernetesVersion: v1.33.0\n",
                6,
                22,
                "3 minor versions older",
            ),
            (
                "kubernetesVersion: v1.37.1\nnodes:\n- role: control-plane\n- kubernetesVersion: 1.38\n",
                6,
                22,
                "newer",
            ),
            (
                "nodes:\n- role: control-plane\n  kubernetesVersion: v1.36.0\n",
                5,
                22,
                "only workers may differ",
            ),
            (
                "nodes:\n- role: control-plane\n- extraConfig: {etcd: {v: 1}}\n",
                5,
                17,
                "a worker runs no etcd",
            ),
            (
                "nodes:\n- role: control-plane\n- binaries: {kube-apiserver: /x}\n",
                5,
                30,
                "a worker runs no kube-apiserver",
            ),
            ("networking: {podSubnet: 10.96.0.0/16}\n", 3, 25, "overlaps the service range 10.96.0.0/12"),
            ("networking:\n  nodeSubnet: 10.244.7.0/24\n", 4, 15, "overlaps the pod range"),
            ("networking:\n  serviceSubnet: 10.0.0.0/8\n  podSubnet: 10.1.0.0/16\n", 5, 14, "overlaps"),
            (
                "networking: {podSubnet: 10.9.0.0/24}\nnodes:\n- role: control-plane\n- {}\n",
                3,
                25,
                "room for 1 node",
            ),
            ("ports: ['80:80', '80:81']\n", 3, 18, "80:81 and 80:80"),
            ("ports: ['80:80']\nnodes:\n- role: control-plane\n- {}\n", 3, 9, "2 nodes cannot all have"),
            (
                "nodes:\n- role: control-plane\n  ports: ['80:80']\n- ports: ['127.0.0.1:80:1']\n",
                6,
                11,
                "127.0.0.1:80:1 and 80:80",
            ),
            (
                "taints: ['a=1:NoSchedule', 'a=2:NoSchedule']\n",
                3,
                28,
                "the taint a:NoSchedule is there twice",
            ),
            ("mounts: ['/a:/x', '/b:/x']\n", 3, 19, "/x is there twice"),
            ("files: [{path: /x, content: a}, {path: /x, content: b}]\n", 3, 40, "/x is there twice"),
            ("files: [{path: /x}]\n", 3, 9, "either content or source"),
            ("files: [{path: /x, content: a, source: b}]\n", 3, 40, "either content or source"),
        ] {
            let got = wrong(body);
            assert_eq!(got.len(), 1, "{body}{got:?}");
            assert_eq!((got[0].0, got[0].1), (line, column), "{body}{got:?}");
            assert!(got[0].2.contains(part), "{body}{got:?}");
        }
    }

    #[test]
    fn several_are_told_at_once() {
        let got = wrong("memory: 1g\nnetworking: {podSubnet: 10.96.0.0/16}\nmounts: ['/a:/x', '/b:/x']\n");
        assert_eq!(got.iter().map(|(line, ..)| *line).collect::<Vec<_>>(), [3, 4, 5]);
    }

    #[test]
    fn what_is_right_passes() {
        for body in [
            "",
            "nodes:\n",
            "networking:\n",
            "cpus: 2\nmemory: 2g\nnodes:\n- role: control-plane\n- cpus: 1\n  memory: 1024\n",
            "kubernetesVersion: 1.37\nnodes:\n- role: control-plane\n- kubernetesVersion: 1.34\n",
            "extraConfig: {apiserver: {v: 1}}\nnodes:\n- role: control-plane\n- {}\n",
            "nodes:\n- role: control-plane\n  ports: ['127.0.0.1:80:80']\n- ports: ['127.0.0.2:80:80', '80:80/udp']\n",
        ] {
            assert_eq!(wrong(body), [], "{body}");
        }
    }
}
