//! Every command's text and JSON form of a cluster that runs, as they were recorded. What needs no cluster is
//! recorded by the command's own tests.

use serde_json::Value;
use system_tests::{Ran, Recorded};

use super::minikube::Minikube;

const LINES: &[&str] = &[
    "status",
    "status -o json",
    "status -ojson -n=m04",
    "status -o json -l cluster",
    "status -f {{.Host}}/{{.Kubelet}}/{{.APIServer}}/{{.Kubeconfig}}/{{.Worker}}",
    "status -n m04",
    "profile",
    "profile list",
    "profile list --light",
    "node list",
    "node status m04",
    "worker list",
    "worker status -o json",
    "worker ip m04",
    "ip",
    "ip -n m04",
    "ssh -n m04 -- hostname",
    "ssh-key -n m04",
    "ssh-host -n m04",
    "cp /etc/hostname m04:/tmp/copied",
    "service list",
    "service list -o json",
    "service list -n nowhere -o json",
    "service web",
    "service web --url",
    "service web --url --https",
    "service web --format {{.Name}}@{{.IP}} --url",
    "addons list",
    "addons list -o json",
    "addons configure registry",
    "dashboard --url",
    "cache list",
    "docker-env --shell none",
    "docker-env --shell sh -n m04",
    "docker-env --shell fish --no-proxy",
    "docker-env -o json",
    "docker-env -o yaml",
    "podman-env",
    "update-context",
    "node start m04",
    "fault list",
    "start --dry-run",
    "start -o json",
];

pub fn every_form(mk: &Minikube<'_>) {
    let version = mk.line("version --short").ok().text().to_owned();
    let mut recorded = Recorded::new(&version, mk.home().parent().expect("a directory"));
    LINES.iter().for_each(|line| recorded.add(&mk.line(line)));
    profiles(mk, &mut recorded);
    images(mk, &mut recorded);
    recorded.add(&kept(mk.line("logs -n 1"), |line| line.starts_with("==> ") && is_of_every_node(line)));
    components(mk, &mut recorded);
    recorded.is_as("running-cluster");
}

/// The output's lines that say something which is the same tomorrow.
fn kept(ran: Ran, keep: impl Fn(&str) -> bool) -> Ran {
    let stdout = ran.stdout.split_inclusive('\n').filter(|line| keep(line)).collect();
    Ran { stdout, ..ran }
}

/// Pods come and go, and their sections with them.
fn is_of_every_node(section: &str) -> bool {
    !section.contains('[')
}

/// The configuration is looked at by `schemas`.
fn profiles(mk: &Minikube<'_>, recorded: &mut Recorded) {
    let ran = mk.line("profile list -o json").ok();
    let mut json = ran.json();
    for profile in json["valid"].as_array_mut().expect("profiles") {
        profile["Config"] = Value::from("CONFIG");
    }
    recorded.add(&Ran { stdout: json.to_string(), ..ran });
}

/// Their versions are the node image's.
fn components(mk: &Minikube<'_>, recorded: &mut Recorded) {
    let ran = mk.line("version --components -o yaml");
    let line = |line: &str| match line.split_once(": ") {
        Some((name, version)) if version != "error" => format!("{name}: VERSION\n"),
        _ => format!("{line}\n"),
    };
    recorded.add(&Ran { stdout: ran.stdout.lines().map(line).collect(), ..ran });
}

/// Of all images the one that the test loaded.
fn images(mk: &Minikube<'_>, recorded: &mut Recorded) {
    const OURS: &str = "library/web";
    recorded.add(&kept(mk.line("image ls"), |line| line.contains(OURS)));
    let table = mk.line("image ls --format table");
    recorded.add(&kept(table, |line| line.contains(OURS) || line.contains("Image ID")));
    let ran = mk.line("image ls --format json");
    let images = ran.json();
    let ours = images.as_array().into_iter().flatten().find(|i| i.to_string().contains(OURS));
    recorded.add(&Ran { stdout: ours.expect("the image that was loaded").to_string(), ..ran });
}
