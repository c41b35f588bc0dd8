//! Parts that are switched on and off.

use std::time::Duration;

use system_tests::eventually;

use super::minikube::Minikube;

const SOON: Duration = Duration::from_secs(60);

fn names(mk: &Minikube<'_>, what: &str) -> String {
    mk.kubectl(&["get", what, "-A", "-o", "name"]).ok().stdout
}

pub fn addons(mk: &Minikube<'_>) {
    let list = mk.line("addons list -o json").ok().json();
    for (name, state) in [
        ("storage-provisioner", "enabled"),
        ("registry", "enabled"),
        ("dashboard", "disabled"),
        ("ingress-dns", "disabled"),
    ] {
        assert_eq!(list[name]["Status"], state, "{name}");
    }
    // By `start --addons`.
    assert!(names(mk, "daemonsets").contains("/registry\n"));
    mk.line("addons open registry").exit(115);
    mk.line("addons disable registry").ok();
    assert!(!names(mk, "daemonsets").contains("/registry\n"));
    mk.line("addons enable frobnicator").exit(10);
    mk.line("addons disable frobnicator").exit(116);
    mk.line("addons disable default-storageclass").ok();
    assert_eq!(names(mk, "storageclasses"), "");
    mk.line("addons enable default-storageclass").ok();
    assert_eq!(names(mk, "storageclasses"), "storageclass.storage.k8s.io/standard\n");
    provisioner(mk);
}

const PROVISIONER: &str = "/local-path-provisioner\n";

/// It is off and on again, and then it provides.
fn provisioner(mk: &Minikube<'_>) {
    assert!(names(mk, "deployments").contains(PROVISIONER));
    mk.line("addons disable storage-provisioner").ok();
    assert!(!names(mk, "deployments").contains(PROVISIONER));
    mk.line("addons enable storage-provisioner").ok();
    eventually("the provisioner runs", SOON, || {
        let path = "jsonpath={.status.availableReplicas}";
        let args = ["get", "deployment", "-n", "local-path-storage", "local-path-provisioner", "-o", path];
        match mk.kubectl(&args) {
            ran if ran.stdout == "1" => Ok(()),
            ran => Err(ran.stdout + &ran.stderr),
        }
    });
}

/// While the cluster is down: written down, and made at its next start.
pub fn recorded_while_stopped(mk: &Minikube<'_>) {
    for (word, on) in [("enable", true), ("disable", false)] {
        mk.line(&format!("addons {word} registry")).ok();
        let file = mk.home().join("profiles/minikube/config.json");
        let text = std::fs::read_to_string(file).expect("the configuration");
        let config: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(config["Addons"]["registry"], on);
    }
}
