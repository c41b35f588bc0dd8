//! Can this host make a node as it is asked for? Looked at before anything is changed: what would fail
//! half-way fails here, and what would be passed over is said.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use drivers::native::loop_device::CONTROL as LOOP_CONTROL;
use model::node_config::{Component, FileSource, NodeConfig};
use model::{Cluster, DriverKind, Fault, Node, Reason, skew};

/// Of one node, with what it inherits.
pub fn able(cluster: &Cluster, node: &Node) -> Result<(), Fault> {
    let machine = cluster.machine(node);
    let config = cluster.config_of(node);
    versions(cluster, node)
        .and_then(|()| paths(&config))
        .and_then(|()| etcd_stays(&config))
        .and_then(|()| not_here(cluster.driver, &config, &node.config))
        .map_err(|fault| Fault { message: format!("{machine}: {}", fault.message), ..fault })
}

fn fault(reason: Reason, message: impl Into<String>) -> Fault {
    Fault::new(reason, message)
}

fn versions(cluster: &Cluster, node: &Node) -> Result<(), Fault> {
    skew::check(&cluster.kubernetes_version, &node.kubernetes_version, node.control_plane)
        .map_err(|rule| fault(Reason::Usage, rule))
}

fn paths(config: &NodeConfig) -> Result<(), Fault> {
    let missing =
        |what: &str, path: &str| fault(Reason::PathMissing, format!("{what} {path}: there is no such file"));
    for mount in &config.mounts {
        if !Path::new(&mount.host).exists() {
            return Err(fault(
                Reason::PathMissing,
                format!("cannot mount {}: there is no such file or directory", mount.host),
            ));
        }
    }
    for (binary, path) in &config.binaries {
        let meta = std::fs::metadata(path).map_err(|_| missing(&format!("the binary of {binary},"), path))?;
        if !meta.is_file() || meta.permissions().mode() & 0o111 == 0 {
            return Err(fault(Reason::Usage, format!("{path}, the binary of {binary}, is not a program")));
        }
    }
    for file in &config.files {
        if let FileSource::Host(path) = &file.from {
            std::fs::File::open(path).map_err(|e| {
                fault(Reason::PathMissing, format!("cannot place {path} at {}: {e}", file.path))
            })?;
        }
    }
    Ok(())
}

/// Whether a control plane has etcd's data is looked at in one place. Elsewhere it would be taken for lost.
fn etcd_stays(config: &NodeConfig) -> Result<(), Fault> {
    let data = bootstrap::paths::ETCD_DATA;
    let refuse = |what: String| {
        let message = format!("{what}: etcd's data stays in {data} of each node");
        Err(fault(Reason::Unimplemented, message))
    };
    let flags = config.extra_config.get(&Component::Etcd).into_iter().flatten();
    for (flag, value) in flags {
        if matches!(flag.as_str(), "data-dir" | "wal-dir") && value.trim_end_matches('/') != data {
            return refuse(format!("etcd.{flag}={value} cannot be set"));
        }
    }
    for patch in &config.patches.kubeadm {
        let Some(etcd) = patch.get("etcd") else { continue };
        if etcd.get("external").is_some() {
            return refuse("etcd.external of patches.kubeadm cannot be set".to_owned());
        }
        let dir = etcd.pointer("/local/dataDir").and_then(|d| d.as_str());
        if let Some(dir) = dir.filter(|d| d.trim_end_matches('/') != data) {
            return refuse(format!("etcd.local.dataDir={dir} of patches.kubeadm cannot be set"));
        }
        let args = etcd.pointer("/local/extraArgs").map(ToString::to_string).unwrap_or_default();
        if let Some(flag) = ["data-dir", "wal-dir"].into_iter().find(|f| args.contains(&format!("\"{f}\""))) {
            return refuse(format!("{flag} of etcd in patches.kubeadm cannot be set"));
        }
    }
    let covers = |at: &str| Path::new(data).starts_with(at) || Path::new(at).starts_with(data);
    match config.mounts.iter().find(|m| covers(&m.node)) {
        Some(mount) => refuse(format!("{} cannot be mounted at {}", mount.host, mount.node)),
        None => Ok(()),
    }
}

fn not_here(driver: DriverKind, config: &NodeConfig, own: &NodeConfig) -> Result<(), Fault> {
    let refuse = |message: String| Err(fault(Reason::Unimplemented, message));
    match config.container_runtime.as_deref() {
        None | Some("" | "containerd") => {}
        Some(other) => {
            return refuse(format!("the node image has no {other}: the container runtime is containerd"));
        }
    }
    if let Some(port) = config.ports.first().filter(|_| driver == DriverKind::Native) {
        return refuse(format!(
            "the native driver publishes no ports ({port}): the node answers at its own address on all of them"
        ));
    }
    if config.own_disk_mib().is_some() && drivers::user_namespace::is_own() {
        return refuse(
            "a disk of its own (--disk-size) is a loop device, which a rootless engine may not use"
                .to_owned(),
        );
    }
    if config.own_disk_mib().is_some() && !Path::new(LOOP_CONTROL).exists() {
        return refuse(format!(
            "a disk of its own (--disk-size) needs loop devices, and this host has none: there is no {LOOP_CONTROL} \
             (modprobe loop)"
        ));
    }
    if own.extra_config.contains_key(&Component::KubeProxy) {
        return refuse(
            "kube-proxy is configured for all nodes alike: set its options for the whole cluster".to_owned(),
        );
    }
    let of_kubeadm = config.extra_config.get(&Component::Kubeadm).into_iter().flatten();
    for (flag, _) in of_kubeadm {
        if flag != bootstrap::kubeadm::IGNORE_FLAG {
            return refuse(format!(
                "kubeadm.{flag} cannot be set: use the flags of start, or patches.kubeadm of the cluster file"
            ));
        }
    }
    bootstrap::containerd::check(&config.patches.containerd).map_err(|e| {
        fault(Reason::Usage, format!("patches.containerd: {}", format!("{e:#}").replace('\n', " ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(json: &str) -> Option<(Reason, String)> {
        let config: NodeConfig = serde_json::from_str(json).unwrap();
        let result = paths(&config)
            .and_then(|()| etcd_stays(&config))
            .and_then(|()| not_here(DriverKind::Native, &config, &config));
        result.err().map(|f| (f.reason, f.message))
    }

    #[test]
    fn what_cannot_be_is_said() {
        assert_eq!(refused(r#"{ "ContainerRuntime": "containerd", "Mounts": ["/tmp:/data"] }"#), None);
        assert_eq!(refused(r#"{ "Binaries": { "kubelet": "/bin/sh" } }"#), None);
        assert_eq!(
            refused(r#"{ "ExtraConfig": { "kubeadm": { "ignore-preflight-errors": "all" } } }"#),
            None
        );
        for (json, reason, part) in [
            (r#"{ "ContainerRuntime": "docker" }"#, Reason::Unimplemented, "no docker"),
            (r#"{ "Mounts": ["/no/such:/data"] }"#, Reason::PathMissing, "/no/such"),
            (r#"{ "Binaries": { "kubelet": "/no/such" } }"#, Reason::PathMissing, "binary of kubelet"),
            (r#"{ "Binaries": { "kubelet": "/tmp" } }"#, Reason::Usage, "not a program"),
            (r#"{ "Ports": ["8080:80"] }"#, Reason::Unimplemented, "publishes no ports"),
            (r#"{ "ExtraConfig": { "kubeadm": { "x": "y" } } }"#, Reason::Unimplemented, "kubeadm.x"),
            (r#"{ "Patches": { "Containerd": ["a = "] } }"#, Reason::Usage, "patches.containerd"),
            (
                r#"{ "ExtraConfig": { "etcd": { "data-dir": "/x" } } }"#,
                Reason::Unimplemented,
                "etcd.data-dir=/x",
            ),
            (
                r#"{ "ExtraConfig": { "etcd": { "wal-dir": "/x" } } }"#,
                Reason::Unimplemented,
                "etcd.wal-dir=/x",
            ),
            (r#"{ "Mounts": ["/tmp:/var/lib/minikube/etcd"] }"#, Reason::Unimplemented, "cannot be mounted"),
            (
                r#"{ "Patches": { "Kubeadm": [{ "kind": "ClusterConfiguration", "etcd": { "local": { "dataDir": "/var/lib/fast" } } }] } }"#,
                Reason::Unimplemented,
                "etcd.local.dataDir=/var/lib/fast",
            ),
            (
                r#"{ "Patches": { "Kubeadm": [{ "etcd": { "local": { "extraArgs": [{ "name": "wal-dir", "value": "/w" }] } } }] } }"#,
                Reason::Unimplemented,
                "wal-dir of etcd",
            ),
            (
                r#"{ "Patches": { "Kubeadm": [{ "etcd": { "external": {} } }] } }"#,
                Reason::Unimplemented,
                "etcd.external",
            ),
        ] {
            let (got, message) = refused(json).unwrap();
            assert!(got == reason && message.contains(part) && !message.contains('\n'), "{json}: {message}");
        }
    }
}
