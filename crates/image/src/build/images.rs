//! What is in each container image.

use std::path::PathBuf;

use anyhow::Result;

use super::layer::Layer;
use super::oci::Image;
use crate::pins::{Kubernetes, Pins};

/// Where things are found.
pub struct Parts<'a> {
    pub pins: &'a Pins,
    pub kubernetes: &'a Kubernetes,
    /// The programs of a component.
    pub programs: &'a dyn Fn(&str) -> PathBuf,
    /// The Debian root.
    pub root: PathBuf,
    /// Busybox's commands.
    pub applets: Vec<String>,
    /// What the programs of the kube-proxy image load.
    pub libraries: Vec<String>,
}

/// Programs of the Debian root in the kube-proxy image.
pub const PROXY_TOOLS: [&str; 5] = [
    "usr/sbin/nft",
    "usr/sbin/xtables-nft-multi",
    "usr/sbin/xtables-legacy-multi",
    "usr/sbin/conntrack",
    "usr/bin/kmod",
];

/// All references, sorted: what a node never pulls.
pub fn references(pins: &Pins, kubernetes: &Kubernetes) -> Vec<String> {
    let version = &kubernetes.version;
    let provisioner = pins.components.get("local-path-provisioner").map_or("", String::as_str);
    let mut all = vec![
        etcd_reference(kubernetes),
        coredns_reference(kubernetes),
        pause_reference(kubernetes),
        format!("docker.io/rancher/local-path-provisioner:{provisioner}"),
        format!("docker.io/library/busybox:{}", pins.busybox.tag),
        registry_reference(pins),
    ];
    all.extend(SERVERS.iter().chain([&"kube-proxy"]).map(|name| format!("registry.k8s.io/{name}:{version}")));
    all.sort();
    all
}

const SERVERS: [&str; 3] = ["kube-apiserver", "kube-controller-manager", "kube-scheduler"];

fn etcd_reference(kubernetes: &Kubernetes) -> String {
    format!("registry.k8s.io/etcd:{}", kubernetes.etcd.tag)
}

fn coredns_reference(kubernetes: &Kubernetes) -> String {
    format!("registry.k8s.io/coredns/coredns:{}", kubernetes.coredns.tag)
}

fn registry_reference(pins: &Pins) -> String {
    let version = pins.components.get("registry").map_or("", String::as_str);
    format!("docker.io/library/registry:{}", version.trim_start_matches('v'))
}

/// The image of every pod's first container.
pub fn pause_reference(kubernetes: &Kubernetes) -> String {
    format!("registry.k8s.io/pause:{}", kubernetes.pause)
}

/// The images that `references` names.
pub fn images(parts: &Parts) -> Result<Vec<Image>> {
    let version = &parts.kubernetes.version;
    let mut images: Vec<Image> = SERVERS.iter().map(|name| server(parts, name)).collect();
    images.push(Image {
        reference: format!("registry.k8s.io/kube-proxy:{version}"),
        layer: proxy(parts)?,
        entrypoint: vec![],
        cmd: vec!["kube-proxy".into()],
    });
    images.push(Image {
        reference: etcd_reference(parts.kubernetes),
        layer: etcd(parts),
        entrypoint: vec![],
        cmd: vec!["etcd".into()],
    });
    images.push(Image {
        reference: coredns_reference(parts.kubernetes),
        layer: coredns(parts),
        entrypoint: vec!["/coredns".into()],
        cmd: vec![],
    });
    let mut pause = Layer::default();
    pause.program("pause", (parts.programs)("pause").join("pause"));
    images.push(Image {
        reference: pause_reference(parts.kubernetes),
        layer: pause,
        entrypoint: vec!["/pause".into()],
        cmd: vec![],
    });
    images.extend([provisioner(parts), busybox(parts), registry(parts)]);
    Ok(images)
}

/// Nothing but the static program.
fn server(parts: &Parts, name: &str) -> Image {
    let mut layer = Layer::default();
    layer.program(&format!("usr/local/bin/{name}"), (parts.programs)("kubernetes").join(name));
    Image {
        reference: format!("registry.k8s.io/{name}:{}", parts.kubernetes.version),
        layer,
        entrypoint: vec![],
        cmd: vec![name.into()],
    }
}

/// kube-proxy, and the tools it calls with their libraries.
fn proxy(parts: &Parts) -> Result<Layer> {
    let mut layer = Layer::default();
    layer.program("usr/local/bin/kube-proxy", (parts.programs)("kubernetes").join("kube-proxy"));
    for (link, target) in
        [("bin", "usr/bin"), ("sbin", "usr/sbin"), ("lib", "usr/lib"), ("lib64", "usr/lib64")]
    {
        layer.link(link, target);
    }
    for path in PROXY_TOOLS.iter().copied().chain(parts.libraries.iter().map(String::as_str)) {
        layer.program(path, fs_err::canonicalize(parts.root.join(path))?);
    }
    layer.link("usr/sbin/modprobe", "../bin/kmod");
    for family in ["iptables", "ip6tables"] {
        for action in ["", "-save", "-restore"] {
            layer.link(&format!("usr/sbin/{family}{action}"), "xtables-nft-multi");
            layer.link(&format!("usr/sbin/{family}-nft{action}"), "xtables-nft-multi");
            layer.link(&format!("usr/sbin/{family}-legacy{action}"), "xtables-legacy-multi");
        }
    }
    // Both iptables lock this file.
    layer.dir("run", 0o755).dir("tmp", 0o1777);
    Ok(layer)
}

fn etcd(parts: &Parts) -> Layer {
    let mut layer = shell(parts);
    for name in ["etcd", "etcdctl", "etcdutl"] {
        layer.program(&format!("usr/local/bin/{name}"), (parts.programs)("etcd").join(name));
    }
    layer
}

fn coredns(parts: &Parts) -> Layer {
    let mut layer = Layer::default();
    layer.program("coredns", (parts.programs)("coredns").join("coredns"));
    // To forward over TLS it must know whom to trust.
    let authorities = "etc/ssl/certs/ca-certificates.crt";
    layer.file(authorities, parts.root.join(authorities));
    layer
}

fn provisioner(parts: &Parts) -> Image {
    let name = "local-path-provisioner";
    let version = parts.pins.components.get(name).map_or("", String::as_str);
    let mut layer = Layer::default();
    layer.program(&format!("usr/bin/{name}"), (parts.programs)(name).join(name));
    Image {
        reference: format!("docker.io/rancher/{name}:{version}"),
        layer,
        entrypoint: vec![],
        cmd: vec![name.into()],
    }
}

fn registry(parts: &Parts) -> Image {
    let mut layer = Layer::default();
    layer.program("bin/registry", (parts.programs)("registry").join("registry"));
    layer.text("etc/distribution/config.yml", REGISTRY_CONFIG);
    let authorities = "etc/ssl/certs/ca-certificates.crt";
    layer.file(authorities, parts.root.join(authorities)).dir("var/lib/registry", 0o755).dir("tmp", 0o1777);
    Image {
        reference: registry_reference(parts.pins),
        layer,
        entrypoint: vec!["/bin/registry".into()],
        cmd: vec!["serve".into(), "/etc/distribution/config.yml".into()],
    }
}

/// Plain, on every address: who runs it decides who reaches it.
const REGISTRY_CONFIG: &str = "\
version: 0.1
log:
  level: warn
  accesslog:
    disabled: true
storage:
  delete:
    enabled: true
  filesystem:
    rootdirectory: /var/lib/registry
http:
  addr: :5000
";

fn busybox(parts: &Parts) -> Image {
    Image {
        reference: format!("docker.io/library/busybox:{}", parts.pins.busybox.tag),
        layer: shell(parts),
        entrypoint: vec![],
        cmd: vec!["sh".into()],
    }
}

/// A small Unix: busybox under all its names, and the users a program may look up.
fn shell(parts: &Parts) -> Layer {
    let mut layer = Layer::default();
    layer.program("bin/busybox", parts.root.join("usr/bin/busybox"));
    for applet in parts.applets.iter().filter(|applet| *applet != "busybox") {
        layer.link(&format!("bin/{applet}"), "busybox");
    }
    layer.link("usr/bin/env", "../../bin/env");
    layer.text("etc/passwd", "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/home:/bin/false\n");
    layer.text("etc/group", "root:x:0:\nnogroup:x:65534:\n");
    layer.dir("tmp", 0o1777).dir("root", 0o700).dir("home", 0o755).dir("var/tmp", 0o1777);
    layer
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pins::pins;

    #[test]
    fn references_are_what_kubeadm_asks_for_and_ours() {
        let found = references(pins(), pins().kubernetes("v1.37.1").unwrap());
        assert_eq!(
            found,
            [
                "docker.io/library/busybox:1.37",
                "docker.io/library/registry:3.1.2",
                "docker.io/rancher/local-path-provisioner:v0.0.30",
                "registry.k8s.io/coredns/coredns:v1.14.6",
                "registry.k8s.io/etcd:3.7.0-0",
                "registry.k8s.io/kube-apiserver:v1.37.1",
                "registry.k8s.io/kube-controller-manager:v1.37.1",
                "registry.k8s.io/kube-proxy:v1.37.1",
                "registry.k8s.io/kube-scheduler:v1.37.1",
                "registry.k8s.io/pause:3.10.2",
            ]
        );
    }

    #[test]
    fn there_is_an_image_for_every_reference() {
        let root = tempfile::tempdir().unwrap();
        for tool in PROXY_TOOLS {
            std::fs::create_dir_all(root.path().join(tool).parent().unwrap()).unwrap();
            std::fs::write(root.path().join(tool), "").unwrap();
        }
        let kubernetes = &pins().kubernetes[0];
        let programs = |component: &str| PathBuf::from("/cache").join(component);
        let parts = Parts {
            pins: pins(),
            kubernetes,
            programs: &programs,
            root: root.path().to_owned(),
            applets: vec!["sh".into()],
            libraries: vec![],
        };
        let mut made: Vec<_> = images(&parts).unwrap().into_iter().map(|image| image.reference).collect();
        made.sort();
        assert_eq!(made, references(pins(), kubernetes));
    }
}
