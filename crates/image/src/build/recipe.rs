//! What an image is made of, as data. Pure: a recipe and the compiler's version give a component's key,
//! and the keys of all components give the image's name.

use serde::Serialize;

use super::debian::LATER;
use crate::hash;
use crate::pins::{Kubernetes, Pins};

/// Part of every key: raise it when the way a component is made changes but its recipe does not.
const GENERATION: u32 = 1;

/// Part of the image's key: raise it when the way the parts are put together changes.
const ASSEMBLY: u32 = 2;

/// How to make one component.
#[derive(Debug, Clone, Serialize)]
pub struct Recipe {
    pub name: &'static str,
    pub version: String,
    pub make: Make,
}

#[derive(Debug, Clone, Serialize)]
pub enum Make {
    Go(Go),
    /// One C file in the Kubernetes module.
    Pause {
        kubernetes: Module,
    },
    /// A root file system of Debian packages.
    Debian {
        packages: Vec<String>,
        /// Suites beside that of the release.
        later: Vec<&'static str>,
        /// When newer packages were asked for. Others take what the cache has.
        #[serde(skip_serializing_if = "Option::is_none")]
        refreshed: Option<String>,
    },
}

/// Programs out of Go modules.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Go {
    pub modules: Vec<Module>,
    /// Import paths of the programs.
    pub packages: Vec<String>,
    /// Linked statically against libraries of this machine.
    pub cgo: bool,
    pub tags: Vec<&'static str>,
    /// Variables set by the linker. `TIME` stands for the time of the first module's version, so that the
    /// same sources always give the same program.
    pub stamps: Vec<(String, String)>,
    /// Programs that Go names after their directory: (from, to).
    pub rename: Vec<(&'static str, &'static str)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Module {
    pub path: String,
    pub version: String,
}

pub const TIME: &str = "{time}";

pub const KUBERNETES: [&str; 7] = [
    "kubelet",
    "kubeadm",
    "kubectl",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kube-proxy",
];

pub const CNI: [&str; 8] = [
    "main/bridge",
    "main/ptp",
    "main/loopback",
    "ipam/host-local",
    "meta/portmap",
    "meta/bandwidth",
    "meta/tuning",
    "meta/firewall",
];

impl Recipe {
    /// What the component's directory in the cache is called.
    pub fn directory(&self, toolchain: &str) -> String {
        let inputs = serde_json::json!([GENERATION, toolchain, std::env::consts::ARCH, self]);
        format!("{}-{}", self.name, key(&inputs.to_string()))
    }
}

/// The name of the image that these recipes make.
pub fn image_name(kubernetes: &str, recipes: &[Recipe], toolchain: &str, busybox_tag: &str) -> String {
    let parts: Vec<_> = recipes.iter().map(|recipe| recipe.directory(toolchain)).collect();
    let inputs = serde_json::json!([ASSEMBLY, busybox_tag, parts]);
    format!("{kubernetes}-{}", key(&inputs.to_string()))
}

fn key(inputs: &str) -> String {
    hash::bytes(inputs.as_bytes())[..12].to_owned()
}

/// All components of a Kubernetes version: the Debian root first, because it needs the network and not the
/// cores, then the Go programs, the small ones first, so that a mistake shows early.
pub fn recipes(pins: &Pins, kubernetes: &Kubernetes, refreshed: Option<String>) -> Vec<Recipe> {
    let shared = |name: &str| pins.components.get(name).cloned().unwrap_or_default();
    let go = |name, version: &str, make| Recipe { name, version: version.to_owned(), make: Make::Go(make) };
    vec![
        Recipe {
            name: "debian",
            version: pins.debian.suite.clone(),
            make: Make::Debian { packages: pins.debian.packages.clone(), later: LATER.to_vec(), refreshed },
        },
        Recipe {
            name: "pause",
            version: kubernetes.pause.clone(),
            make: Make::Pause { kubernetes: module("k8s.io/kubernetes", &kubernetes.version) },
        },
        go("cni", &shared("cni"), cni(&shared("cni"))),
        go("runc", &shared("runc"), runc(&shared("runc"))),
        go("etcd", &kubernetes.etcd.version, etcd(&kubernetes.etcd.version)),
        go("containerd", &shared("containerd"), containerd(&shared("containerd"))),
        go(
            "local-path-provisioner",
            &shared("local-path-provisioner"),
            provisioner(&shared("local-path-provisioner")),
        ),
        go("registry", &shared("registry"), registry(&shared("registry"))),
        go("docker", &shared("docker"), docker(&shared("docker"), &shared("buildkit"))),
        go("coredns", &kubernetes.coredns.version, coredns(&kubernetes.coredns.version)),
        go("kubernetes", &kubernetes.version, kubernetes_programs(kubernetes, &KUBERNETES)),
    ]
}

/// What a node runs itself, whatever the version of its cluster.
pub const OF_A_NODE: [&str; 2] = ["kubelet", "kube-proxy"];

/// These alone, of another version than the cluster's.
pub fn node_programs(kubernetes: &Kubernetes) -> Recipe {
    let make = Make::Go(kubernetes_programs(kubernetes, &OF_A_NODE));
    Recipe { name: "kubelet", version: kubernetes.version.clone(), make }
}

fn kubernetes_programs(pin: &Kubernetes, names: &[&str]) -> Go {
    let mut numbers = pin.version.trim_start_matches('v').split('.');
    let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    let values = [
        ("gitVersion", pin.version.as_str()),
        ("gitMajor", major),
        ("gitMinor", minor),
        ("gitCommit", pin.commit.as_deref().unwrap_or("unknown")),
        ("gitTreeState", "clean"),
        ("buildDate", TIME),
    ];
    // Two packages hold the version: that of the components and that of the client in them.
    let holders = ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"];
    let stamp = |holder: &'static str| {
        values.iter().map(move |(name, value)| (format!("{holder}.{name}"), (*value).to_owned()))
    };
    Go {
        modules: vec![module("k8s.io/kubernetes", &pin.version)],
        packages: names.iter().map(|name| format!("k8s.io/kubernetes/cmd/{name}")).collect(),
        stamps: holders.into_iter().flat_map(stamp).collect(),
        ..Go::default()
    }
}

fn etcd(version: &str) -> Go {
    let paths = ["server", "etcdctl", "etcdutl"].map(|name| format!("go.etcd.io/etcd/{name}/v3"));
    Go {
        modules: paths.iter().map(|path| module(path, version)).collect(),
        packages: paths.to_vec(),
        rename: vec![("server", "etcd")],
        ..Go::default()
    }
}

fn containerd(version: &str) -> Go {
    let path = "github.com/containerd/containerd/v2";
    Go {
        modules: vec![module(path, version)],
        packages: ["containerd", "containerd-shim-runc-v2", "ctr"]
            .map(|name| format!("{path}/cmd/{name}"))
            .to_vec(),
        tags: vec!["urfave_cli_no_docs"],
        stamps: vec![(format!("{path}/version.Version"), version.to_owned())],
        ..Go::default()
    }
}

fn runc(version: &str) -> Go {
    let path = "github.com/opencontainers/runc";
    Go {
        modules: vec![module(path, version)],
        packages: vec![path.to_owned()],
        // Its first process is C and libseccomp is a C library; static, because the node's libc is another one.
        cgo: true,
        tags: vec!["seccomp", "netgo", "osusergo", "urfave_cli_no_docs"],
        ..Go::default()
    }
}

fn cni(version: &str) -> Go {
    let path = "github.com/containernetworking/plugins";
    Go {
        modules: vec![module(path, version)],
        packages: CNI.iter().map(|plugin| format!("{path}/plugins/{plugin}")).collect(),
        stamps: vec![(format!("{path}/pkg/utils/buildversion.BuildVersion"), version.to_owned())],
        ..Go::default()
    }
}

fn coredns(version: &str) -> Go {
    let path = "github.com/coredns/coredns";
    Go { modules: vec![module(path, version)], packages: vec![path.to_owned()], ..Go::default() }
}

fn provisioner(version: &str) -> Go {
    let path = "github.com/rancher/local-path-provisioner";
    Go {
        modules: vec![module(path, version)],
        packages: vec![path.to_owned()],
        stamps: vec![("main.VERSION".to_owned(), version.to_owned())],
        ..Go::default()
    }
}

fn registry(version: &str) -> Go {
    let path = "github.com/distribution/distribution/v3";
    Go {
        modules: vec![module(path, version)],
        packages: vec![format!("{path}/cmd/registry")],
        stamps: vec![(format!("{path}/version.version"), version.to_owned())],
        ..Go::default()
    }
}

/// The Docker engine, and the client of the BuildKit that is part of it.
fn docker(version: &str, buildkit: &str) -> Go {
    let (path, builder) = ("github.com/moby/moby/v2", "github.com/moby/buildkit");
    Go {
        modules: vec![module(path, version), module(builder, buildkit)],
        packages: vec![
            format!("{path}/cmd/dockerd"),
            format!("{path}/cmd/docker-proxy"),
            format!("{builder}/cmd/buildctl"),
        ],
        stamps: vec![
            (format!("{path}/dockerversion.Version"), version.trim_start_matches('v').to_owned()),
            (format!("{path}/dockerversion.BuildTime"), TIME.to_owned()),
            (format!("{builder}/version.Version"), buildkit.to_owned()),
        ],
        ..Go::default()
    }
}

fn module(path: &str, version: &str) -> Module {
    Module { path: path.to_owned(), version: version.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pins::pins;

    #[test]
    fn every_module_is_pinned_by_checksum() {
        for kubernetes in &pins().kubernetes {
            for recipe in recipes(pins(), kubernetes, None) {
                assert!(!recipe.version.is_empty(), "{}", recipe.name);
                let Make::Go(go) = recipe.make else { continue };
                for module in go.modules {
                    assert!(pins().sum(&module.path, &module.version).is_some(), "{module:?}");
                }
            }
        }
    }

    #[test]
    fn keys_depend_on_what_goes_in_and_are_shared_where_nothing_differs() {
        let of = |index: usize| recipes(pins(), &pins().kubernetes[index], None);
        let directory = |recipes: &[Recipe], name: &str, toolchain: &str| {
            recipes.iter().find(|recipe| recipe.name == name).unwrap().directory(toolchain)
        };
        let (newest, older) = (of(0), of(1));
        assert_eq!(directory(&newest, "runc", "go1"), directory(&older, "runc", "go1"));
        assert_ne!(directory(&newest, "runc", "go1"), directory(&newest, "runc", "go2"));
        assert_ne!(directory(&newest, "etcd", "go1"), directory(&older, "etcd", "go1"));
        let name = |tag| image_name("v1.37.1", &newest, "go1", tag);
        assert_ne!(name("1.37"), name("1.38"));
        assert!(name("1.37").starts_with("v1.37.1-") && name("1.37").len() == "v1.37.1-".len() + 12);
    }

    #[test]
    fn a_refresh_makes_debians_part_again_and_no_other() {
        let kubernetes = &pins().kubernetes[0];
        let plain = recipes(pins(), kubernetes, None);
        let (first, second) =
            (recipes(pins(), kubernetes, Some("1".into())), recipes(pins(), kubernetes, Some("2".into())));
        for ((plain, first), second) in plain.iter().zip(&first).zip(&second) {
            let [plain, first, second] = [plain, first, second].map(|recipe| recipe.directory("go1"));
            let differ = (plain != first, first != second);
            assert_eq!(differ, (plain.starts_with("debian-"), plain.starts_with("debian-")), "{plain}");
        }
        // As before there was such a thing: what is in caches stays of use.
        assert!(!serde_json::to_string(&plain).unwrap().contains("refreshed"));
    }

    #[test]
    fn kubernetes_knows_its_version_in_both_places() {
        let go = kubernetes_programs(&pins().kubernetes[0], &KUBERNETES);
        for holder in ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"] {
            for (name, value) in
                [("gitVersion", "v1.37.1"), ("gitMajor", "1"), ("gitMinor", "37"), ("buildDate", TIME)]
            {
                assert!(
                    go.stamps.contains(&(format!("{holder}.{name}"), value.to_owned())),
                    "{holder}.{name}"
                );
            }
        }
    }
}
