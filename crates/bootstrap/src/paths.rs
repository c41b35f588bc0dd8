//! Where things lie in a node: minikube's places where scripts look, kubeadm's everywhere else.

/// kubeadm's certificatesDir.
pub const CERTS: &str = "/var/lib/minikube/certs";
pub const ETCD_DATA: &str = "/var/lib/minikube/etcd";
pub const KUBECONFIG: &str = "/var/lib/minikube/kubeconfig";
pub const KUBEADM_CONFIG: &str = "/var/tmp/minikube/kubeadm.yaml";
/// Of a node that `kubeadm join` takes in.
pub const JOIN_CONFIG: &str = "/var/tmp/minikube/kubeadm-join.yaml";
pub const KUBERNETES: &str = "/etc/kubernetes";
pub const MANIFESTS: &str = "/etc/kubernetes/manifests";
/// Manifests of the components that wait for the first API answer (see `kubeadm::phases`).
pub const HELD: &str = "/etc/kubernetes/held";
pub const PATCHES: &str = "/etc/kubernetes/patches";
pub const KUBELET: &str = "/var/lib/kubelet";
/// Programs of the user's that take the place of those in images.
pub const PROGRAMS: &str = "/usr/local/lib/manykube/bin";
pub const RESOLV_CONF: &str = "/etc/manykube/resolv.conf";
pub const CONTAINERD_CONFIG: &str = "/etc/containerd/config.toml";
pub const CRI_SOCKET: &str = "unix:///run/containerd/containerd.sock";
/// Tells a control plane that it is no member of etcd: at its next boot it drops what it has of etcd's data and of
/// its static pods, and nothing else.
pub const REJOIN: &str = "/var/lib/minikube/rejoin";
/// Of an earlier version: exists while a control plane is no voter of etcd.
pub const OUTSIDE: &str = "/var/lib/minikube/outside";
/// Exists once kubeadm has written this node's manifests and kubelet configuration.
pub const PREPARED: &str = "/var/lib/minikube/prepared";
