//! The registry in the cluster: one name for the host and all nodes, and data that no node takes along.

use system_tests::{Lab, eventually, http_get_path};

use super::{SOON, context, docker, ready};

/// The host's own programs, which are in the test's network, and every node call it this.
const REGISTRY: &str = "localhost:5000";

/// By `image push`, by a docker client, and by the nodes' kubelets.
pub fn pushed_and_pulled(lab: &Lab, machines: &[&str], env: &str) {
    let enabled = lab.manykube(&["addons", "enable", "registry"]).ok();
    assert!(enabled.stdout.contains(&format!("Push to {REGISTRY}")), "{}", enabled.stdout);
    let announced =
        lab.kubectl(&["get", "cm", "-n", "kube-public", "local-registry-hosting", "-o", "yaml"]).ok();
    assert!(announced.stdout.contains(&format!("host: \"{REGISTRY}\"")), "{}", announced.stdout);

    let (ours, theirs) = (format!("{REGISTRY}/team/ours:v1"), format!("{REGISTRY}/team/theirs:v1"));
    // An image of its own: a kubelet lets pods use what it pulled by the name it pulled, and by no other.
    lab.manykube(&["image", "build", "--push", "-t", &ours, &context(lab, "pushed")]).ok();
    lab.manykube(&["image", "rm", &ours]).ok();
    docker(env, &["tag", "theirs:v1", &theirs]).ok();
    docker(env, &["push", &theirs]).ok();
    has_all(lab);
    lab.apply(&format!(
        "{{apiVersion: apps/v1, kind: DaemonSet, metadata: {{name: pulled}}, spec: {{selector: {{matchLabels: {{app: pulled}}}}, \
         template: {{metadata: {{labels: {{app: pulled}}}}, spec: {{terminationGracePeriodSeconds: 0, containers: \
         [{{name: main, image: '{ours}', imagePullPolicy: Always}}]}}}}}}}}"
    ));
    ready(lab, "pulled", machines.len());

    // One node only; then, by another way, all.
    let again = format!("{REGISTRY}/team/again:v1");
    lab.manykube(&["image", "tag", "app:v2", &again]).ok();
    lab.manykube(&["image", "push", &again]).ok();
    lab.manykube(&["image", "rm", &again]).ok();
    let who_has = || {
        let has = |m: &&&str| lab.manykube(&["image", "ls", "-n", m]).ok().stdout.contains(&again);
        machines.iter().filter(has).count()
    };
    lab.manykube(&["image", "pull", "-n", machines[1], &again]).ok();
    assert_eq!(who_has(), 1);
    lab.manykube(&["image", "load", "--remote", &again]).ok();
    assert_eq!(who_has(), machines.len());
    let missing = lab.manykube(&["image", "pull", &format!("{REGISTRY}/team/nothing:v1")]).exit(80);
    assert!(missing.stderr.contains("not found"), "{}", missing.stderr);
}

/// Asked of the host's own localhost, whichever node is down.
pub fn has_all(_: &Lab) {
    eventually("the registry answers on the host", SOON, || {
        let answer = http_get_path("127.0.0.1:5000", "/v2/_catalog")?;
        let all = ["team/ours", "team/theirs"].iter().all(|name| answer.contains(name));
        if all { Ok(()) } else { Err(answer) }
    });
}
