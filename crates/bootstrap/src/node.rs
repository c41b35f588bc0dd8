//! Everything that is put into a node before it boots.

use anyhow::Result;
use model::node_config::FileSource;
use model::node_spec::NodeFile;
use model::{Cluster, Node};

use crate::kubeadm;
use crate::pki::leaf::{self, of_machine};
use crate::pki::{Found, Pair, Pki};
use crate::{Options, containerd, kube_vip, kubeconfig, paths};

const SECRET: u32 = 0o600;
const PUBLIC: u32 = 0o644;

/// The files of one node: certificates, kubeconfigs, kubeadm's, kubelet's and containerd's
/// configuration. The same input gives the same files.
pub fn node_files(cluster: &Cluster, node: &Node, pki: &Pki, options: &Options) -> Result<Vec<NodeFile>> {
    let mut files = certificates(cluster, node, pki)?;
    files.extend(kubeconfig::files(cluster, node, pki)?);
    files.extend(kubeadm::files(cluster, node, options)?);
    let own = cluster.config_of(node);
    files.push(containerd::file(&options.pause_image, &own.patches.containerd)?);
    files.extend(kube_vip::file(cluster, node, options.join.is_some())?);
    // Last: who places a file means it, also where one of ours lies.
    for file in &own.files {
        let data = match &file.from {
            FileSource::Content(text) => text.clone().into_bytes(),
            FileSource::Host(path) => fs_err::read(path)?,
        };
        files.push(NodeFile::new(file.path.clone(), file.mode, data));
    }
    Ok(files)
}

/// How the certificates in a node compare with those of the profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Certified {
    AsWanted,
    /// Only that of its API server is another one, which is taken up while it runs.
    OtherApi,
    Other,
}

/// `read` gives a file of the node. A node whose certificates are still to be made has none to compare.
pub fn certified(
    cluster: &Cluster,
    node: &Node,
    found: &Found,
    read: &dyn Fn(&str) -> Option<Vec<u8>>,
) -> Certified {
    let own = of_machine(&cluster.machine(node), "");
    let host_only = |name: &str| name == leaf::CLIENT;
    let concerns = |name: &&String| match name.strip_prefix("pki/nodes/") {
        Some(_) => name.starts_with(&own),
        None => node.control_plane && !host_only(name),
    };
    let stale: Vec<&String> = found.stale.iter().filter(concerns).collect();
    let api = in_certs("apiserver.crt");
    let Ok(wanted) = certificates(cluster, node, &found.pki) else { return Certified::AsWanted };
    let Ok(configs) = kubeconfig::files(cluster, node, &found.pki) else { return Certified::AsWanted };
    let other = |file: &NodeFile| read(&file.path).as_deref() != Some(&file.data);
    // Of a kubeconfig only who it is for: all else in it may be the user's.
    let other_identity =
        |file: &NodeFile| identity(&read(&file.path).unwrap_or_default()) != identity(&file.data);
    // And the half by which tokens are believed.
    let public = || wanted.iter().filter(|f| f.path.ends_with(".crt") || f.path.ends_with("/sa.pub"));
    if stale.iter().any(|name| *name != leaf::APISERVER)
        || public().any(|f| f.path != api && other(f))
        || configs.iter().any(other_identity)
    {
        Certified::Other
    } else if !stale.is_empty() || public().any(other) {
        Certified::OtherApi
    } else {
        Certified::AsWanted
    }
}

fn identity(kubeconfig: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(kubeconfig);
    text.lines().find(|l| l.trim_start().starts_with("client-certificate-data:")).map(|l| l.trim().to_owned())
}

/// What is written into a node that runs when its API server is to have another certificate. The key comes
/// first: a server that reads between the two keeps what it has.
pub fn api_certificate(pki: &Pki) -> Result<[NodeFile; 2]> {
    let [cert, key] = pair(&in_certs("apiserver"), pki.leaf(leaf::APISERVER)?);
    Ok([key, cert])
}

fn certificates(cluster: &Cluster, node: &Node, pki: &Pki) -> Result<Vec<NodeFile>> {
    let machine = cluster.machine(node);
    let own = |what: &str| of_machine(&machine, what);
    let mut files = Vec::new();
    // The kubelet's default place: it makes an RSA one for itself only where there is none.
    files.extend(pair(&format!("{}/pki/kubelet", paths::KUBELET), pki.leaf(&own(leaf::KUBELET_SERVER))?));
    if !node.control_plane {
        files.push(NodeFile::new(in_certs("ca.crt"), PUBLIC, pki.ca.cert.clone()));
        return Ok(files);
    }
    for (path, authority) in
        [("ca", &pki.ca), ("front-proxy-ca", &pki.front_proxy_ca), ("etcd/ca", &pki.etcd_ca)]
    {
        files.extend(pair(&in_certs(path), authority));
    }
    let leaves = [
        ("apiserver", leaf::APISERVER.to_owned()),
        ("apiserver-kubelet-client", leaf::APISERVER_KUBELET_CLIENT.to_owned()),
        ("apiserver-etcd-client", leaf::APISERVER_ETCD_CLIENT.to_owned()),
        ("front-proxy-client", leaf::FRONT_PROXY_CLIENT.to_owned()),
        ("etcd/server", own(leaf::ETCD_SERVER)),
        ("etcd/peer", own(leaf::ETCD_PEER)),
        ("etcd/healthcheck-client", leaf::ETCD_HEALTHCHECK_CLIENT.to_owned()),
        ("kube-controller-manager", leaf::CONTROLLER_MANAGER_SERVER.to_owned()),
        ("kube-scheduler/tls", leaf::SCHEDULER_SERVER.to_owned()),
    ];
    for (path, name) in leaves {
        files.extend(pair(&in_certs(path), pki.leaf(&name)?));
    }
    files.push(NodeFile::new(in_certs("sa.key"), SECRET, pki.service_account.private.clone()));
    files.push(NodeFile::new(in_certs("sa.pub"), PUBLIC, pki.service_account.public.clone()));
    Ok(files)
}

fn in_certs(path: &str) -> String {
    format!("{}/{path}", paths::CERTS)
}

fn pair(base: &str, pair: &Pair) -> [NodeFile; 2] {
    [
        NodeFile::new(format!("{base}.crt"), PUBLIC, pair.cert.clone()),
        NodeFile::new(format!("{base}.key"), SECRET, pair.key.clone()),
    ]
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use model::Home;

    use super::*;
    use crate::{fixture, pki};

    fn files(node: usize) -> Vec<NodeFile> {
        let dir = tempfile::tempdir().unwrap();
        let cluster = fixture::cluster(1, 1);
        let pki = pki::ensure(&Home::new(dir.path(), None), &cluster, SystemTime::now()).unwrap();
        node_files(&cluster, &cluster.nodes[node], &pki, &fixture::options()).unwrap()
    }

    fn listing(files: &[NodeFile]) -> String {
        let mut lines: Vec<String> = files.iter().map(|f| format!("{:04o} {}", f.mode, f.path)).collect();
        lines.sort_by(|a, b| a[5..].cmp(&b[5..]));
        lines.dedup();
        lines.join("\n")
    }

    #[test]
    fn a_control_plane_has_everything_kubeadm_looks_for() {
        insta::assert_snapshot!(listing(&files(0)));
    }

    #[test]
    fn what_a_node_has_is_compared() {
        let dir = tempfile::tempdir().unwrap();
        let (home, cluster, now) = (Home::new(dir.path(), None), fixture::cluster(1, 1), SystemTime::now());
        let pki = pki::ensure(&home, &cluster, now).unwrap();
        let files =
            |node: usize| node_files(&cluster, &cluster.nodes[node], &pki, &fixture::options()).unwrap();
        let of = |cluster: &Cluster, node: usize, edit: &dyn Fn(&mut NodeFile)| {
            let mut files = files(node);
            files.iter_mut().for_each(edit);
            let read = |path: &str| files.iter().find(|f| f.path == path).map(|f| f.data.clone());
            let found = pki::look(&home, cluster, now).unwrap().unwrap();
            certified(cluster, &cluster.nodes[node], &found, &read)
        };
        let lose = |path: &'static str| {
            move |f: &mut NodeFile| {
                if f.path.ends_with(path) {
                    f.data.clear()
                }
            }
        };
        assert_eq!(of(&cluster, 0, &|_| ()), Certified::AsWanted);
        assert_eq!(of(&cluster, 1, &|_| ()), Certified::AsWanted);
        assert_eq!(of(&cluster, 0, &lose("certs/apiserver.crt")), Certified::OtherApi);
        assert_eq!(of(&cluster, 0, &lose("etcd/peer.crt")), Certified::Other);
        assert_eq!(of(&cluster, 0, &lose("certs/sa.pub")), Certified::Other);
        assert_eq!(of(&cluster, 1, &lose("kubelet.conf")), Certified::Other);
        let named = Cluster { api_names: vec!["other.example".into()], ..cluster.clone() };
        assert_eq!(of(&named, 0, &|_| ()), Certified::OtherApi);
        assert_eq!(of(&named, 1, &|_| ()), Certified::AsWanted);
    }

    #[test]
    fn a_worker_has_no_authoritys_key() {
        insta::assert_snapshot!(listing(&files(1)));
    }

    #[test]
    fn kubeconfigs_point_where_kubeadms_do() {
        let files = files(0);
        let server = |path: &str| {
            let file = files.iter().find(|f| f.path == path).unwrap();
            let text = String::from_utf8(file.data.clone()).unwrap();
            text.lines().find_map(|l| l.trim().strip_prefix("server: ")).unwrap().to_owned()
        };
        let shared = "https://control-plane.minikube.internal:8443";
        assert_eq!(server("/etc/kubernetes/admin.conf"), shared);
        for own in ["kubelet", "controller-manager", "scheduler"] {
            assert_eq!(server(&format!("/etc/kubernetes/{own}.conf")), "https://192.168.49.2:8443");
        }
        assert_eq!(server("/var/lib/minikube/kubeconfig"), "https://localhost:8443");
    }
}
