//! Which of kubeadm's phases run when. Each call of kubeadm is a process of some tens of
//! milliseconds, so whole `init` runs with most phases left out do it in one each.

use model::node_spec::{API_SERVER_POD as APISERVER, EARLY_API, Kubelet, Prepare};
use model::{Cluster, Node};

use super::own;
use crate::paths::{ETCD_DATA, HELD, KUBEADM_CONFIG, KUBELET, KUBERNETES, MANIFESTS, PREPARED, REJOIN};

/// Before the API: manifests and kubelet configuration.
const PREPARE: [&str; 3] = ["etcd", "control-plane", "kubelet-start"];
/// Once the API takes writes and has the Node, besides the upload of the configuration.
const FINISH: [&str; 2] = ["mark-control-plane", "bootstrap-token"];
/// All of `kubeadm init`, 1.35 to 1.37.
const PHASES: [&str; 14] = [
    "preflight",
    "certs",
    "kubeconfig",
    "etcd",
    "control-plane",
    "kubelet-start",
    "wait-control-plane",
    "upload-config",
    "upload-certs",
    "mark-control-plane",
    "bootstrap-token",
    "kubelet-finalize",
    "addon",
    "show-join-command",
];
/// Held back until the API first answers: the two burn CPU waiting for it, which is what it
/// comes up slower for (0.6 s and 1.5 CPU seconds on two cores).
const LATE: [&str; 2] = ["kube-controller-manager.yaml", "kube-scheduler.yaml"];

/// What a node runs before its kubelet, and its kubelet.
/// With `hold_api` its API server waits: of one that joins, until etcd has taken it in (a learner answers
/// none); of those that begin together, all but the first, because together they take the cores from each
/// other and make the same roles against each other, and nobody is ready before all are.
pub fn node_spec_parts(cluster: &Cluster, node: &Node, hold_api: bool) -> (Vec<Prepare>, Kubelet) {
    let prepare = if node.control_plane { vec![reset(), prepare_control_plane(hold_api)] } else { vec![] };
    let argv = kubelet_argv(cluster, node);
    let kubelet = Kubelet { argv, env_files: vec![format!("{KUBELET}/kubeadm-flags.env")], env: vec![] };
    (prepare, kubelet)
}

pub fn kubelet_argv(cluster: &Cluster, node: &Node) -> Vec<String> {
    let mut argv = vec![
        "kubelet".into(),
        format!("--config={KUBELET}/config.yaml"),
        format!("--kubeconfig={KUBERNETES}/kubelet.conf"),
    ];
    let own = own::kubelet_flags(&cluster.config_of(node), node.control_plane);
    argv.extend(own.iter().map(|(flag, value)| format!("--{flag}={value}")));
    argv
}

/// What `kubeadm reset` removes, in a control plane that joins again. It runs at each boot and does nothing without the
/// mark. The mark is gone for good before etcd has new data: it must not cost a member anything.
pub fn reset() -> Prepare {
    let pods = ["etcd.yaml", APISERVER, LATE[0], LATE[1]].join(" ");
    let script = format!(
        "[ -e {REJOIN} ] || exit 0; \
         ! [ -d {ETCD_DATA} ] || find {ETCD_DATA} -mindepth 1 -delete || exit 1; \
         ! [ -d {MANIFESTS} ] || (cd {MANIFESTS} && rm -f {pods}) || exit 1; \
         rm -rf {HELD} {KUBELET}/config.yaml {KUBELET}/kubeadm-flags.env && rm {REJOIN} && sync $(dirname {REJOIN})"
    );
    Prepare { name: "reset".into(), argv: shell(&script), creates: None }
}

/// The marker comes last: interrupted anywhere, all of it runs again and does the same.
fn prepare_control_plane(hold_api: bool) -> Prepare {
    let init = init_only(&PREPARE).join(" ");
    let mut late = LATE.join(" ");
    if hold_api {
        late = format!("{late} {APISERVER}");
    }
    let script =
        format!("{init} && mkdir -p {HELD} && cd {MANIFESTS} && mv -f {late} {HELD}/ && touch {PREPARED}");
    Prepare { name: "kubeadm".into(), argv: shell(&script), creates: Some(PREPARED.into()) }
}

/// Run in a control plane whose API server was held back. May be run again.
pub fn release_apiserver_command() -> Vec<String> {
    shell(&format!("[ ! -e {HELD}/{APISERVER} ] || mv -f {HELD}/{APISERVER} {MANIFESTS}/"))
}

/// Run in a control plane when its own API server is ready: nobody else answers for it any more, and
/// connections that somebody else has are made anew. May be run again.
pub fn own_api_command(cluster: &Cluster, node: &Node) -> Vec<String> {
    let (ip, port) = (node.ip, cluster.api_port);
    shell(&format!(
        "nft delete table ip {EARLY_API} 2>/dev/null || exit 0; \
         conntrack -D -p tcp --orig-dst {ip} --dport {port} 2>/dev/null || true"
    ))
}

/// Run in each control plane at its first answer: lets the held components go. May be run again.
pub fn release_command() -> Vec<String> {
    shell(&format!(
        "[ ! -d {HELD} ] || {{ cd {HELD} && for f in *.yaml; do [ ! -e \"$f\" ] || mv -f \"$f\" {MANIFESTS}/; done; }}"
    ))
}

/// Run in the primary, in order, once its Node is registered: what makes it a cluster that kubeadm
/// knows. The upload is a call of its own, because an `init` that leaves the addons out uploads
/// them as disabled, and a later `kubeadm upgrade` would then pass them by.
pub fn finish_commands(_cluster: &Cluster) -> Vec<Vec<String>> {
    let upload = ["kubeadm", "init", "phase", "upload-config", "all", "--config", KUBEADM_CONFIG];
    let mut rest = init_only(&FINISH);
    rest.push("--skip-token-print".into());
    vec![upload.map(str::to_owned).to_vec(), rest]
}

/// Prints kubeadm's own kube-proxy and CoreDNS, for `addons::objects`. It needs no API.
pub fn addon_manifest_command() -> Vec<String> {
    let print =
        |addon: &str| format!("kubeadm init phase addon {addon} --config {KUBEADM_CONFIG} --print-manifest");
    shell(&format!("{} && echo && echo --- && {}", print("kube-proxy"), print("coredns")))
}

fn init_only(phases: &[&str]) -> Vec<String> {
    let skipped: Vec<&str> = PHASES.into_iter().filter(|p| !phases.contains(p)).collect();
    let words = ["kubeadm", "init", "--config", KUBEADM_CONFIG, "--skip-phases", &skipped.join(",")];
    words.map(str::to_owned).to_vec()
}

pub fn shell(script: &str) -> Vec<String> {
    vec!["/bin/sh".into(), "-c".into(), script.into()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_control_plane_prepares_with_one_call_of_kubeadm() {
        let cluster = fixture::cluster(1, 1);
        let (prepare, kubelet) = node_spec_parts(&cluster, &cluster.nodes[0], false);
        assert_eq!(prepare.len(), 2);
        insta::assert_snapshot!(prepare[1].argv.join("\n"));
        insta::assert_snapshot!(kubelet.argv.join("\n"));
    }

    /// Run for real, below a directory of its own.
    #[test]
    fn a_reset_takes_etcd_and_its_pods_and_leaves_the_rest() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path.trim_start_matches('/'));
        let script = reset().argv[2].replace("/var/", &format!("{}/var/", dir.path().display()));
        let script = script.replace("/etc/", &format!("{}/etc/", dir.path().display()));
        let run = || std::process::Command::new("/bin/sh").args(["-c", &script]).status().unwrap().success();
        let taken = [
            "/var/lib/minikube/etcd/member/wal/0.wal",
            "/etc/kubernetes/manifests/etcd.yaml",
            "/etc/kubernetes/manifests/kube-apiserver.yaml",
            "/etc/kubernetes/held/kube-scheduler.yaml",
            "/var/lib/kubelet/config.yaml",
        ];
        let kept =
            ["/etc/kubernetes/manifests/kube-vip.yaml", "/var/local-path-provisioner/pvc/file", "/var/keep"];
        for path in taken.iter().chain(&kept) {
            std::fs::create_dir_all(at(path).parent().unwrap()).unwrap();
            std::fs::write(at(path), "x").unwrap();
        }
        assert!(run() && taken.iter().all(|p| at(p).exists()), "without the mark");
        std::fs::write(at(REJOIN), "").unwrap();
        assert!(run());
        assert!(taken.iter().all(|p| !at(p).exists()) && kept.iter().all(|p| at(p).exists()));
        assert!(at(ETCD_DATA).exists() && !at(REJOIN).exists());
    }

    #[test]
    fn a_worker_has_nothing_to_prepare() {
        let cluster = fixture::cluster(1, 1);
        assert!(node_spec_parts(&cluster, &cluster.nodes[1], false).0.is_empty());
    }

    #[test]
    fn commands_of_a_running_cluster() {
        let mut commands = vec![release_command(), addon_manifest_command()];
        commands.extend(finish_commands(&fixture::cluster(1, 0)));
        let text: Vec<String> = commands.iter().map(|c| c.join("\n")).collect();
        insta::assert_snapshot!(text.join("\n\n"));
    }

    #[test]
    fn every_phase_we_ask_for_exists() {
        for phase in PREPARE.iter().chain(&FINISH) {
            assert!(PHASES.contains(phase), "{phase}");
        }
    }
}
