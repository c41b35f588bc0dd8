//! What people and hosts do to a Docker engine behind our back, and what an engine refuses. That clusters live in one
//! as they do natively is seen by the tests that `make test` runs on both drivers.

mod beside;
mod refused;

use std::time::Duration;

use system_tests::{Engine, Lab, Ran, eventually, power};

const NOT_HEALTHY: i32 = 55;
const OTHER_DRIVER: i32 = 81;
const SOON: Duration = Duration::from_secs(30);
const ALL: [&str; 3] = ["minikube", "minikube-m02", "minikube-m03"];

/// One cluster of three control planes goes through all of it, and keeps its addresses and what it was told.
#[test]
fn what_is_taken_away_comes_back() {
    let mut lab = Lab::with_docker();
    refused::before_the_first_start(&lab);
    let started = lab.manykube(&["start", "--ha", "--ports=127.0.0.1:18080:30080"]).ok();
    println!("start of 3 control planes: {:.1} s", started.elapsed.as_secs_f32());
    assert!(started.stdout.contains("docker driver"), "{}", started.stdout);
    lab.kubectl(&["create", "configmap", "kept", "--from-literal=a=b"]).ok();
    let addresses = addresses(&lab);
    all_is_well(&lab);
    containers_as_minikubes(&lab);
    let other = lab.manykube(&["start", "--driver=native"]).exit(OTHER_DRIVER);
    assert!(other.stderr.contains("\"docker\" driver"), "{}", other.stderr);

    faults(&lab);
    a_container_is_removed(&lab);
    the_network_is_removed(&lab);
    the_engine_is_killed(&mut lab);
    the_engine_stops(&mut lab);
    the_host_loses_its_power(&mut lab);
    assert_eq!(self::addresses(&lab), addresses);

    refused::a_guest_in_the_network(&lab);
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
    let kept = lab.kubectl(&["get", "configmap", "kept", "-o", "jsonpath={.data.a}"]).ok();
    assert_eq!(kept.text(), "b");
    lab.nothing_to_do();
}

fn addresses(lab: &Lab) -> String {
    lab.manykube(&["node", "list"]).ok().stdout
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
    let state = docker(lab, &["inspect", "--format", "{{.State.Status}}", "minikube-m02"]);
    assert_eq!(state.text(), "exited");
}

/// Names and labels by which other tools find nodes, and the ports of the host that lead to them.
fn containers_as_minikubes(lab: &Lab) {
    let label = "label=created_by.minikube.sigs.k8s.io=true";
    let format = r#"{{.Names}} {{.Label "name.minikube.sigs.k8s.io"}}"#;
    let names = docker(lab, &["ps", "--filter", label, "--format", format]).stdout;
    let mut names: Vec<&str> = names.lines().collect();
    names.sort_unstable();
    assert_eq!(names, ALL.map(|name| format!("{name} {name}")), "containers");
    for machine in ALL {
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

/// One that was killed before; another one as it runs would cost the majority.
fn a_container_is_removed(lab: &Lab) {
    docker(lab, &["rm", "--force", "minikube-m02"]);
    let hosts = lab.manykube(&["status", "-n", "m02", "-o", "json"]);
    assert!(hosts.stdout.contains("Stopped"), "{}", hosts.stdout);
    lab.manykube(&["start"]).ok();
    all_is_well(lab);
}

fn the_network_is_removed(lab: &Lab) {
    for machine in ALL {
        docker(lab, &["network", "disconnect", "--force", "minikube", machine]);
    }
    docker(lab, &["network", "rm", "minikube"]);
    let started = lab.manykube(&["start"]).ok();
    println!("start without a network: {:.1} s", started.elapsed.as_secs_f32());
    all_is_well(lab);
}

/// Nodes go on without it; it ends them when it is back, unless it is told to keep them.
fn the_engine_is_killed(lab: &mut Lab) {
    lab.engine.as_mut().expect("the lab has one").crash();
    lab.kubectl(&["get", "nodes"]).ok();
    lab.engine.as_mut().expect("the lab has one").up();
    let started = lab.manykube(&["start"]).ok();
    println!("start after the engine was killed: {:.1} s", started.elapsed.as_secs_f32());
    all_is_well(lab);
}

/// Under nodes that run; somebody cleans up before it is used again, and others are there before us.
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
    refused::at_a_later_start(lab);
    let started = lab.manykube(&["start"]).ok();
    println!("start after the engine was restarted and emptied: {:.1} s", started.elapsed.as_secs_f32());
    all_is_well(lab);
}

fn the_host_loses_its_power(lab: &mut Lab) {
    power::lost(lab);
    let running = docker(lab, &["ps", "--quiet"]);
    assert_eq!(running.text(), "", "nobody but us starts nodes");
    let started = lab.manykube(&["start"]).ok();
    println!("start after a loss of power: {:.1} s", started.elapsed.as_secs_f32());
    all_is_well(lab);
}

fn nothing_is_left(lab: &Lab) {
    assert_eq!(engine(lab).left(), "");
    eventually("no bridge of ours", SOON, || {
        let links = std::fs::read_to_string("/proc/thread-self/net/dev").map_err(|e| e.to_string())?;
        if links.contains("mk-") { Err(links) } else { Ok(()) }
    });
}
