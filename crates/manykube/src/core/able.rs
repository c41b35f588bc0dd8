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
        let result = paths(&config).and_then(|()| not_here(DriverKind::Native, &config, &config));
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
        ] {
            let (got, message) = refused(json).unwrap();
            assert!(got == reason && message.contains(part) && !message.contains('\n'), "{json}: {message}");
        }
    }
}
