//! Nodes that are containers of a Docker engine: their life, and what people do to an engine behind our back.
//! One cluster of three control planes goes through all of it.

use std::time::Duration;

use system_tests::{Engine, Lab, Ran, eventually};

const NOT_HEALTHY: i32 = 55;
const OTHER_DRIVER: i32 = 81;
const SOON: Duration = Duration::from_secs(30);

#[test]
fn a_cluster_of_containers() {
    let mut lab = Lab::with_docker();
    names_that_are_taken(&lab);
    commands_die(&lab);
    let started = lab.manykube(&["start", "--ha", "--driver=docker", "--ports=127.0.0.1:18080:30080"]).ok();
    println!("start of 3 control planes, image brought: {:.1} s", started.elapsed.as_secs_f32());
    assert!(started.stdout.contains("docker driver"), "{}", started.stdout);
    all_is_well(&lab);
    containers_as_minikubes(&lab);
    let other = lab.manykube(&["start", "--driver=native"]).exit(OTHER_DRIVER);
    assert!(other.stderr.contains("\"docker\" driver"), "{}", other.stderr);

    let addresses = addresses(&lab);
    nodes_come_and_go(&lab);
    faults(&lab);
    a_container_is_removed(&lab);
    the_network_is_removed(&lab);
    the_engine_stops(&mut lab);
    assert_eq!(self::addresses(&lab), addresses);

    lab.manykube(&["stop"]).ok();
    lab.manykube(&["delete"]).ok();
    nothing_is_left(&lab);
}

fn engine(lab: &Lab) -> &Engine {
    lab.engine.as_ref().expect("the lab has one")
}

fn docker(lab: &Lab, args: &[&str]) -> Ran {
    engine(lab).docker(args).ok()
}

fn all_is_well(lab: &Lab) {
    let profiles = lab.manykube(&["profile", "list", "-o", "json"]).ok().json();
    assert_eq!(profiles["valid"][0]["Status"], "HAppy", "{profiles}");
    let nodes = lab.kubectl(&["get", "nodes", "--no-headers"]).ok();
    assert_eq!(nodes.stdout.lines().filter(|l| l.contains(" Ready ")).count(), 3, "{}", nodes.stdout);
    assert_eq!(lab.manykube(&["ssh", "-n", "m02", "--", "hostname"]).ok().text(), "minikube-m02");
    lab.nothing_to_do();
}

fn addresses(lab: &Lab) -> String {
    lab.manykube(&["node", "list"]).ok().stdout
}

/// Neither is touched, and nothing of the cluster is made.
fn names_that_are_taken(lab: &Lab) {
    docker(lab, &["network", "create", "taken"]);
    let refused = lab.manykube(&["start", "-p", "taken", "--driver=docker"]);
    assert!(refused.code != 0 && refused.stderr.contains("network \"taken\""), "{refused:?}");
    lab.manykube(&["delete", "-p", "taken"]).ok();
    let kept = docker(lab, &["network", "ls", "--format", "{{.Name}}"]);
    assert!(kept.stdout.lines().any(|l| l == "taken"), "{}", kept.stdout);
    docker(lab, &["network", "rm", "taken"]);
}

/// A part of the crash matrix: what is left half-done is the engine's here. `crash.rs` has all places.
fn commands_die(lab: &Lab) {
    let killed = |args: &[&str], place: &str| {
        let output = lab.command(args).env("MANYKUBE_CRASH_AT", place).output().expect("run manykube");
        assert_eq!(output.status.code(), None, "{args:?} at {place} was not killed");
    };
    let start = ["start", "--driver=docker", "--wait=none"];
    for place in ["network-up:after", "create/minikube:after", "boot/minikube:before", "boot/minikube:after"]
    {
        killed(&start, place);
    }
    lab.manykube(&start).ok();
    lab.kubectl(&["get", "node", "minikube"]).ok();
    for place in ["remove/minikube:before", "remove/minikube:after", "forget-network:after"] {
        killed(&["delete"], place);
    }
    lab.manykube(&["delete"]).ok();
    nothing_is_left(lab);
}

fn faults(lab: &Lab) {
    lab.manykube(&["fault", "freeze", "m02"]).ok();
    let state = docker(lab, &["inspect", "--format", "{{.State.Status}}", "minikube-m02"]);
    assert_eq!(state.text(), "paused");
    lab.manykube(&["fault", "thaw", "m02"]).ok();
    lab.manykube(&["fault", "cut", "m03", "--from", "m02"]).ok();
    let ping = |to: &str| lab.manykube(&["ssh", "-n", "m03", "--", "busybox", "ping", "-c1", "-W2", to]);
    assert_ne!(ping("192.168.49.3").code, 0, "m02 from m03");
    assert_eq!(ping("192.168.49.2").code, 0, "the primary from m03");
    lab.manykube(&["fault", "heal", "--all"]).ok();
    assert_eq!(ping("192.168.49.3").code, 0, "m02 from m03 again");
    lab.manykube(&["fault", "kill", "m02"]).ok();
    lab.manykube(&["start"]).ok();
    all_is_well(lab);
}

/// Names and labels by which other tools find nodes, and the ports of the host that lead to them.
fn containers_as_minikubes(lab: &Lab) {
    let label = "label=created_by.minikube.sigs.k8s.io=true";
    let format = r#"{{.Names}} {{.Label "name.minikube.sigs.k8s.io"}}"#;
    let names = docker(lab, &["ps", "--filter", label, "--format", format]).stdout;
    let mut names: Vec<&str> = names.lines().collect();
    names.sort_unstable();
    assert_eq!(
        names,
        ["minikube minikube", "minikube-m02 minikube-m02", "minikube-m03 minikube-m03"],
        "containers"
    );
    for machine in ["minikube", "minikube-m02", "minikube-m03"] {
        for port in ["8443", "22", "2376", "5000", "32443"] {
            let at = docker(lab, &["port", machine, port]);
            assert!(at.stdout.starts_with("127.0.0.1:"), "{machine} {port}: {}", at.stdout);
        }
    }
    assert_eq!(docker(lab, &["port", "minikube", "30080"]).text(), "127.0.0.1:18080");
    let format = "{{.HostConfig.Memory}} {{.HostConfig.Privileged}}";
    let size = docker(lab, &["inspect", "--format", format, "minikube-m02"]);
    let memory: u64 = size.text().split(' ').next().and_then(|m| m.parse().ok()).expect("a limit");
    assert!(memory > 1 << 30 && size.text().ends_with("true"), "{}", size.text());
}

fn nodes_come_and_go(lab: &Lab) {
    lab.manykube(&["node", "stop", "m03"]).ok();
    let state = docker(lab, &["inspect", "--format", "{{.State.Status}}", "minikube-m03"]);
    assert_eq!(state.text(), "exited");
    lab.manykube(&["node", "start", "m03"]).ok();
    let added = lab.manykube(&["node", "add"]).ok();
    println!("add of a worker: {:.1} s", added.elapsed.as_secs_f32());
    lab.manykube(&["node", "delete", "m04"]).ok();
    all_is_well(lab);
}

fn a_container_is_removed(lab: &Lab) {
    lab.kubectl(&["create", "configmap", "kept", "--from-literal=a=b"]).ok();
    docker(lab, &["rm", "--force", "minikube-m02"]);
    let hosts = lab.manykube(&["status", "-n", "m02", "-o", "json"]);
    assert!(hosts.stdout.contains("Stopped"), "{}", hosts.stdout);
    lab.manykube(&["start"]).ok();
    all_is_well(lab);
}

fn the_network_is_removed(lab: &Lab) {
    for machine in ["minikube", "minikube-m02", "minikube-m03"] {
        docker(lab, &["network", "disconnect", "--force", "minikube", machine]);
    }
    docker(lab, &["network", "rm", "minikube"]);
    let started = lab.manykube(&["start"]).ok();
    println!("start without a network: {:.1} s", started.elapsed.as_secs_f32());
    all_is_well(lab);
}

/// Under nodes that run; and somebody cleans up before it is used again.
fn the_engine_stops(lab: &mut Lab) {
    lab.engine.as_mut().expect("the lab has one").down();
    for command in ["status", "start", "stop"] {
        let failed = lab.manykube(&[command]);
        assert_eq!(failed.code, NOT_HEALTHY, "{command}: {}{}", failed.stdout, failed.stderr);
        assert!(failed.stderr.contains("Docker engine cannot be reached"), "{}", failed.stderr);
    }
    lab.engine.as_mut().expect("the lab has one").up();
    docker(lab, &["system", "prune", "--all", "--force"]);
    let images = docker(lab, &["images", "--quiet"]);
    assert_eq!(images.text(), "", "the image is gone");
    let started = lab.manykube(&["start"]).ok();
    println!("start after the engine was restarted and emptied: {:.1} s", started.elapsed.as_secs_f32());
    all_is_well(lab);
    let kept = lab.kubectl(&["get", "configmap", "kept", "-o", "jsonpath={.data.a}"]).ok();
    assert_eq!(kept.text(), "b");
}

fn nothing_is_left(lab: &Lab) {
    assert_eq!(docker(lab, &["ps", "--all", "--quiet"]).text(), "");
    assert_eq!(docker(lab, &["volume", "ls", "--quiet"]).text(), "");
    let networks = docker(lab, &["network", "ls", "--format", "{{.Name}}"]).stdout;
    assert!(!networks.contains("minikube"), "{networks}");
    eventually("no bridge of ours", SOON, || {
        let links = std::fs::read_to_string("/proc/thread-self/net/dev").map_err(|e| e.to_string())?;
        if links.contains("mk-") { Err(links) } else { Ok(()) }
    });
}
