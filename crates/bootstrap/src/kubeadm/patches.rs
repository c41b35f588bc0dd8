//! kubeadm patches for its static pods.

use anyhow::Result;
use model::node_config::Binary;
use model::node_spec::NodeFile;
use model::{Cluster, Node};
use serde_json::{Value, json};

use crate::{Options, paths, yaml};

const COMPONENTS: [&str; 4] = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"];

/// kubeadm's startup probes wait 10 s before their first look and 10 s between two, so that a pod
/// which runs after 2 s is Ready after 10 or 20. The number of tries keeps kubeadm's four minutes.
pub fn files(cluster: &Cluster, node: &Node, options: &Options) -> Result<Vec<NodeFile>> {
    let binaries = cluster.config_of(node).binaries;
    let patch = |component: &str| {
        let replaced = component.parse::<Binary>().is_ok_and(|b| binaries.contains_key(&b));
        patch(component, replaced)
    };
    let mut files: Vec<NodeFile> = COMPONENTS.into_iter().map(patch).collect::<Result<_>>()?;
    if let Some(members) = &options.join {
        files.push(etcd_flags(&[
            format!("--initial-cluster={members}"),
            "--initial-cluster-state=existing".to_owned(),
        ])?);
    } else if cluster.is_ha() && !options.by_kubeadm {
        files.push(first_members(cluster)?);
    }
    Ok(files)
}

/// The first control planes form etcd together, none joins another. A patch and not part of the
/// configuration, because that is uploaded and read by control planes that join later.
fn first_members(cluster: &Cluster) -> Result<NodeFile> {
    let members: Vec<String> =
        cluster.control_planes().map(|n| format!("{}=https://{}:2380", cluster.machine(n), n.ip)).collect();
    etcd_flags(&[format!("--initial-cluster={}", members.join(","))])
}

/// The last one of two flags counts: kubeadm's own `--initial-cluster` names this node only.
fn etcd_flags(flags: &[String]) -> Result<NodeFile> {
    let add = |flag| json!({ "op": "add", "path": "/spec/containers/0/command/-", "value": flag });
    let patch: Value = flags.iter().map(add).collect();
    Ok(NodeFile::new(format!("{}/etcd1+json.yaml", paths::PATCHES), 0o644, yaml::to_string(&patch)?))
}

/// With `replaced`, the program in the image is hidden by one of the node's.
fn patch(component: &str, replaced: bool) -> Result<NodeFile> {
    let probe = json!({ "initialDelaySeconds": 0, "periodSeconds": 1, "failureThreshold": 240 });
    let mut pod = json!({ "spec": { "containers": [{ "name": component, "startupProbe": probe }] } });
    if replaced {
        let (from, at) = (format!("{}/{component}", paths::PROGRAMS), format!("/usr/local/bin/{component}"));
        pod["spec"]["volumes"] = json!([{ "name": "program", "hostPath": { "path": from, "type": "File" } }]);
        pod["spec"]["containers"][0]["volumeMounts"] =
            json!([{ "name": "program", "mountPath": at, "readOnly": true }]);
    }
    Ok(NodeFile::new(format!("{}/{component}+strategic.yaml", paths::PATCHES), 0o644, yaml::to_string(&pod)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(control_planes: u32, workers: u32, join: Option<&str>) -> Result<Vec<NodeFile>> {
        let cluster = crate::fixture::cluster(control_planes, workers);
        let options = Options { join: join.map(str::to_owned), ..crate::fixture::options() };
        files(&cluster, &cluster.nodes[0], &options)
    }

    #[test]
    fn a_program_of_the_users_hides_the_images() {
        let mut cluster = crate::fixture::cluster(1, 0);
        cluster.nodes[0].config.binaries.insert(Binary::KubeScheduler, "/tmp/mine".into());
        let files = files(&cluster, &cluster.nodes[0], &crate::fixture::options()).unwrap();
        let text = |i: usize| String::from_utf8_lossy(&files[i].data).into_owned();
        assert!(text(3).contains("path: /usr/local/lib/manykube/bin/kube-scheduler"), "{}", text(3));
        assert!(!text(1).contains("hostPath"));
    }

    #[test]
    fn one_patch_for_each_component() {
        let files = of(1, 0, None).unwrap();
        assert_eq!(files.len(), COMPONENTS.len());
        assert_eq!(files[1].path, "/etc/kubernetes/patches/kube-apiserver+strategic.yaml");
        insta::assert_snapshot!(String::from_utf8_lossy(&files[1].data));
    }

    #[test]
    fn three_control_planes_form_etcd_together() {
        let files = of(3, 1, None).unwrap();
        let text = String::from_utf8_lossy(&files[4].data).into_owned();
        let flag = "--initial-cluster=demo=https://192.168.49.2:2380,demo-m02=https://192.168.49.3:2380,\
                    demo-m03=https://192.168.49.4:2380";
        assert!(text.contains(flag), "{text}");
    }

    #[test]
    fn one_more_joins_those_that_are_there() {
        let members = "demo=https://192.168.49.2:2380,demo-m03=https://192.168.49.4:2380";
        let files = of(3, 1, Some(members)).unwrap();
        assert_eq!(files.len(), COMPONENTS.len() + 1);
        let text = String::from_utf8_lossy(&files[4].data).into_owned();
        assert!(text.contains(members) && text.contains("--initial-cluster-state=existing"), "{text}");
        assert!(!text.contains("demo-m02"), "{text}");
    }
}
