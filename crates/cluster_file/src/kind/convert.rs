//! From kind's file to ours.

use ipnet::Ipv4Net;
use model::cluster::ProxyMode;
use model::node_config::{Component, Mount, Port, Protocol, check_feature_gate};
use model::{address, names};
use serde_json::{Map, Value};

use super::types::{KindFile, KindMount, KindNetworking, KindNode, KindPort, KindRole};
use crate::file::values::{check_kubeadm_patch, usable};
use crate::file::{ClusterFile, NodeGroup, PatchSet, Role};
use crate::yaml::{self, Path, at};

/// kind's default.
const SERVICES: &str = "10.96.0.0/16";

#[derive(Debug, Default)]
pub struct Converted {
    pub file: ClusterFile,
    /// What will not be honoured.
    pub notes: Vec<(Path, String)>,
    /// What cannot be, by kind's rules or ours.
    pub wrong: Vec<(Path, String)>,
}

pub fn convert(kind: &KindFile) -> Converted {
    let mut out = Converted::default();
    out.name(kind.name.as_deref().unwrap_or("kind"));
    out.networking(&kind.networking);
    out.file.feature_gates.clone_from(&kind.feature_gates);
    for gate in kind.feature_gates.keys() {
        if let Err(message) = check_feature_gate(gate) {
            out.wrong(at!["featureGates", gate], message);
        }
    }
    if !kind.runtime_config.is_empty() {
        // The API server takes them as one flag.
        let pairs: Vec<String> = kind.runtime_config.iter().map(|(k, v)| format!("{k}={v}")).collect();
        let flags = out.file.extra_config.0.entry(Component::Apiserver).or_default();
        flags.insert("runtime-config".into(), pairs.join(","));
    }
    out.file.patches = out.patches(&Path::new(), &kind.kubeadm_config_patches);
    out.file.patches.containerd.clone_from(&kind.containerd_config_patches);
    if kind.kubeadm_json.is_some() {
        out.note(
            at!["kubeadmConfigPatchesJSON6902"],
            "JSON 6902 patches are not applied: use kubeadmConfigPatches",
        );
    }
    if kind.containerd_json.is_some() {
        out.note(
            at!["containerdConfigPatchesJSON6902"],
            "JSON 6902 patches are not applied: use containerdConfigPatches",
        );
    }
    out.nodes(&kind.nodes);
    out
}

impl Converted {
    fn note(&mut self, path: Path, message: impl Into<String>) {
        self.notes.push((path, message.into()));
    }

    fn wrong(&mut self, path: Path, message: impl Into<String>) {
        self.wrong.push((path, message.into()));
    }

    fn name(&mut self, name: &str) {
        if !names::is_valid_profile(name) || names::is_reserved_profile(name) {
            self.wrong(at!["name"], format!("{name:?} is no name for a cluster here"));
        }
        self.file.name = Some(name.to_owned());
    }

    /// Named as kind names them, so that `kubectl get node kind-worker2` finds the same node.
    fn nodes(&mut self, nodes: &[KindNode]) {
        let (mut planes, mut workers) = (0, 0);
        if nodes.is_empty() {
            self.file.nodes.push(group("control-plane", 1, Role::ControlPlane));
        }
        for (index, node) in nodes.iter().enumerate() {
            let mut group = match node.role {
                KindRole::ControlPlane => {
                    planes += 1;
                    group("control-plane", planes, Role::ControlPlane)
                }
                KindRole::Worker => {
                    workers += 1;
                    group("worker", workers, Role::Worker)
                }
            };
            let at = at!["nodes", index];
            group.base_image.clone_from(&node.image);
            group.labels.clone_from(&node.labels);
            group.patches = self.patches(&at, &node.kubeadm_config_patches);
            for (i, mount) in node.extra_mounts.iter().enumerate() {
                group.mounts.extend(self.mount([at.clone(), at!["extraMounts", i]].concat(), mount));
            }
            for (i, port) in node.extra_port_mappings.iter().enumerate() {
                group.ports.extend(self.port([at.clone(), at!["extraPortMappings", i]].concat(), port));
            }
            if node.kubeadm_json.is_some() {
                let place = [at, at!["kubeadmConfigPatchesJSON6902"]].concat();
                self.note(place, "JSON 6902 patches are not applied: use kubeadmConfigPatches");
            }
            self.file.nodes.push(group);
        }
    }

    fn mount(&mut self, at: Path, mount: &KindMount) -> Option<Mount> {
        if mount.selinux_relabel {
            self.note([at.clone(), at!["selinuxRelabel"]].concat(), "nothing is relabelled for SELinux");
        }
        if !matches!(mount.propagation.as_deref(), None | Some("" | "None")) {
            self.note([at.clone(), at!["propagation"]].concat(), "mounts are private: nothing is propagated");
        }
        match Mount::new(&mount.host_path, &mount.container_path, mount.read_only) {
            Ok(mount) => Some(mount),
            Err(message) => {
                self.wrong(at, message);
                None
            }
        }
    }

    fn port(&mut self, at: Path, port: &KindPort) -> Option<Port> {
        let place = |key: &str| [at.clone(), at![key]].concat();
        let Some(host) = port.host_port.filter(|p| *p > 0).and_then(|p| u16::try_from(p).ok()) else {
            let message = "a hostPort is needed: a port that is chosen by chance cannot be told from here";
            match port.host_port {
                Some(p) if !(-1..=65535).contains(&p) => {
                    self.wrong(place("hostPort"), format!("{p} is not a port"))
                }
                _ => self.note(place("hostPort"), message),
            }
            return None;
        };
        if port.container_port == 0 {
            self.wrong(place("containerPort"), "0 is not a port");
            return None;
        }
        let listen = match port.listen_address.as_deref() {
            None | Some("") => None,
            Some(text) => match text.parse() {
                Ok(address) => Some(address),
                Err(_) => {
                    self.wrong(place("listenAddress"), format!("{text:?} is not an IPv4 address"));
                    return None;
                }
            },
        };
        let protocol = match port.protocol.as_deref().unwrap_or("TCP").parse::<Protocol>() {
            Ok(protocol) => protocol,
            Err(message) => {
                self.wrong(place("protocol"), message);
                return None;
            }
        };
        Some(Port { listen, host, node: port.container_port, protocol })
    }

    /// Each is a text with YAML in it.
    fn patches(&mut self, at: &Path, texts: &[String]) -> PatchSet {
        let mut set = PatchSet::default();
        for (index, text) in texts.iter().enumerate() {
            let read = yaml::load(text).and_then(|tree| yaml::from_tree::<Map<String, Value>>(&tree));
            let read = read.map_err(|e| match e.span {
                Some(span) => format!("line {} of the patch: {}", span.start.line, e.message),
                None => e.message,
            });
            match read.and_then(|map| check_kubeadm_patch(&map).map(|()| map)) {
                Ok(map) => set.kubeadm.push(map),
                Err(message) => {
                    self.wrong([at.clone(), at!["kubeadmConfigPatches", index]].concat(), message)
                }
            }
        }
        set
    }

    fn networking(&mut self, net: &KindNetworking) {
        let place = |key: &str| at!["networking", key];
        if !matches!(net.ip_family.as_deref(), None | Some("" | "ipv4")) {
            self.note(place("ipFamily"), "clusters have IPv4 only");
        }
        if net.api_server_address.is_some() {
            self.note(
                place("apiServerAddress"),
                "the API is reached at an address of the cluster's own, not on the host's",
            );
        }
        if net.dns_search.is_some() {
            self.note(place("dnsSearch"), "nodes keep the search domains they have");
        }
        match net.api_server_port {
            None | Some(0 | -1) => {}
            Some(port) => match u16::try_from(port).ok().filter(|p| !address::is_node_port_taken(*p)) {
                Some(port) => self.file.api_server.port = Some(port),
                None => {
                    self.wrong(place("apiServerPort"), format!("the API server cannot have the port {port}"))
                }
            },
        }
        self.file.networking.pod_subnet = self.range("podSubnet", net.pod_subnet.as_deref(), 8..=24);
        // Where kind's default is smaller than ours, files rely on what it leaves free.
        let services = net.service_subnet.as_deref().filter(|s| !s.is_empty()).unwrap_or(SERVICES);
        self.file.networking.service_subnet = self.range("serviceSubnet", Some(services), 8..=27);
        if net.disable_default_cni {
            self.file.cni = Some("none".to_owned());
        }
        self.file.networking.kube_proxy_mode = match net.kube_proxy_mode.as_deref() {
            None | Some("") => None,
            Some("iptables") => Some(ProxyMode::Iptables),
            Some("ipvs") => Some(ProxyMode::Ipvs),
            Some("nftables") => Some(ProxyMode::Nftables),
            Some("none") => Some(ProxyMode::None),
            Some(other) => {
                let message = format!("{other:?} is none of iptables, ipvs, nftables, none");
                self.wrong(place("kubeProxyMode"), message);
                None
            }
        };
    }

    /// Of a list for both families, the IPv4 one.
    fn range(
        &mut self,
        key: &str,
        text: Option<&str>,
        prefix: std::ops::RangeInclusive<u8>,
    ) -> Option<Ipv4Net> {
        let text = text.filter(|t| !t.is_empty())?;
        let nets: Vec<&str> = text.split(',').map(str::trim).collect();
        let four = nets.iter().find_map(|t| t.parse::<Ipv4Net>().ok());
        match four.filter(|n| prefix.contains(&n.prefix_len()) && usable(n)) {
            Some(net) => {
                if nets.len() > 1 {
                    self.note(at!["networking", key], format!("of {text}, only {net} is used"));
                }
                Some(net.trunc())
            }
            None => {
                let message =
                    format!("{text:?} has no IPv4 range between /{} and /{}", prefix.start(), prefix.end());
                self.wrong(at!["networking", key], message);
                None
            }
        }
    }
}

fn group(name: &str, number: u32, role: Role) -> NodeGroup {
    let name = if number == 1 { name.to_owned() } else { format!("{name}{number}") };
    NodeGroup { name: Some(name), role, ..NodeGroup::default() }
}
