//! What we change in kubeadm's kube-proxy.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::paths::PROGRAMS;

const PROGRAM: &str = "/usr/local/bin/kube-proxy";
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// One DaemonSet serves nodes of different versions: who has a kube-proxy of its own runs that one, all
/// others that of the image.
pub fn prefer_the_nodes_own(daemon_set: &mut Value) -> Result<()> {
    let pod = daemon_set.pointer_mut("/spec/template/spec").context("kube-proxy's DaemonSet has no pod")?;
    let container = pod.pointer_mut("/containers/0").context("kube-proxy's pod has no container")?;
    ensure!(container["command"][0] == PROGRAM, "kube-proxy is not run as {PROGRAM}");
    container["command"][0] = json!("kube-proxy");
    push(&mut container["env"], json!({ "name": "PATH", "value": format!("{PROGRAMS}:{PATH}") }))?;
    let mount = json!({ "name": "programs", "mountPath": PROGRAMS, "readOnly": true });
    push(&mut container["volumeMounts"], mount)?;
    let volume = json!({ "name": "programs", "hostPath": { "path": PROGRAMS, "type": "DirectoryOrCreate" } });
    push(&mut pod["volumes"], volume)
}

fn push(list: &mut Value, item: Value) -> Result<()> {
    list.as_array_mut().context("kube-proxy's DaemonSet is not as expected")?.push(item);
    Ok(())
}
