//! A node that `kubeadm join` takes in, as on any host. It finds its identity beside it, so there is no token
//! to make, to hand over and to run out; all else it fetches from the cluster itself.

use model::node_spec::Kubelet;
use model::{Cluster, Node};
use serde_json::{Value, json};

use super::{init, own, phases};
use crate::paths::{JOIN_CONFIG, KUBELET, KUBERNETES};

pub fn configuration(cluster: &Cluster, node: &Node) -> Value {
    let mut own = init::configuration(cluster, node);
    own::init(&mut own, &cluster.config_of(node));
    // A control plane's kubelet speaks to its own API server, which is not there yet.
    let identity = if node.control_plane { "admin.conf" } else { "kubelet.conf" };
    let mut join = json!({
        "apiVersion": own["apiVersion"],
        "kind": "JoinConfiguration",
        "discovery": { "file": { "kubeConfigPath": format!("{KUBERNETES}/{identity}") } },
        "nodeRegistration": own["nodeRegistration"],
        "patches": own["patches"],
    });
    if node.control_plane {
        join["controlPlane"] = json!({ "localAPIEndpoint": own["localAPIEndpoint"] });
    }
    join
}

/// There is no systemd that kubeadm could ask to start the kubelet when its files are there.
pub fn kubelet(cluster: &Cluster, node: &Node) -> Kubelet {
    let (config, flags) = (format!("{KUBELET}/config.yaml"), format!("{KUBELET}/kubeadm-flags.env"));
    let mut argv = phases::shell(&format!(
        "until [ -e {config} ] && [ -e {flags} ]; do sleep 0.05; done; . {flags}; exec \"$@\" $KUBELET_KUBEADM_ARGS"
    ));
    // The shell's own name, then what it takes as it is.
    argv.push("kubelet".into());
    argv.extend(phases::kubelet_argv(cluster, node));
    Kubelet { argv, env_files: vec![], env: vec![] }
}

/// Run in the node once it is booted. What kubeadm would look at first is as we made it.
pub fn command() -> Vec<String> {
    ["kubeadm", "join", "--config", JOIN_CONFIG, "--skip-phases", "preflight"].map(str::to_owned).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_worker_shows_who_it_is_and_a_control_plane_where_it_answers() {
        let cluster = fixture::cluster(2, 1);
        let worker = configuration(&cluster, &cluster.nodes[2]);
        assert_eq!(worker["discovery"]["file"]["kubeConfigPath"], "/etc/kubernetes/kubelet.conf");
        assert_eq!(worker["nodeRegistration"]["name"], cluster.machine(&cluster.nodes[2]));
        assert!(worker.get("controlPlane").is_none());
        let plane = configuration(&cluster, &cluster.nodes[1]);
        assert_eq!(plane["discovery"]["file"]["kubeConfigPath"], "/etc/kubernetes/admin.conf");
        assert_eq!(plane["controlPlane"]["localAPIEndpoint"]["advertiseAddress"], "192.168.49.3");
    }
}
