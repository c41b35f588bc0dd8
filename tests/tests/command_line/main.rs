//! The command line as tools drive it, under the name `minikube`, on five nodes. The parts share a cluster, so
//! they are one test.

mod addons;
mod deploy;
mod exit_codes;
mod kubeconfig;
mod minikube;
mod recorded;
mod schemas;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;
use system_tests::exit_codes::When;
use system_tests::{Lab, eventually, http_get};

use minikube::Minikube;

const SOON: Duration = Duration::from_secs(60);
const VIP: &str = "192.168.49.254";

#[test]
fn what_tools_see() {
    let lab = Lab::new();
    let mk = Minikube::new(&lab);
    start_tells_its_steps(&mk);
    tools_recognise_it(&mk);
    answers_are_fast(&mk);
    schemas::files_and_events(&mk);
    files_are_copied(&mk);
    timed("a tool deploys", || deploy::a_tool_deploys(&mk));
    timed("every form", || recorded::every_form(&mk));
    timed("exit codes", || exit_codes::run(&mk, When::Running));
    timed("the kubeconfig", || kubeconfig::several_write_it(&mk));
    deploy::load_balancers_move(&mk);
    timed("addons", || addons::addons(&mk));
    paused(&mk);
    a_stop_comes_later(&mk);
    addons::recorded_while_stopped(&mk);
}

fn timed(what: &str, part: impl FnOnce()) {
    let began = Instant::now();
    part();
    println!("{what}: {:.1} s", began.elapsed().as_secs_f32());
}

fn start_tells_its_steps(mk: &Minikube<'_>) {
    let started = mk.line("start --ha --nodes=5 --output=json --user=testUser").ok();
    println!("start of five nodes: {:.1} s", started.elapsed.as_secs_f32());
    let mut last = -1;
    for line in started.stdout.lines() {
        let event: Value = serde_json::from_str(line).expect("one event per line");
        schemas::event(&event);
        let data = event["data"].as_object().expect("data");
        if event["type"] == "io.k8s.sigs.minikube.step" {
            let number: i32 = data["currentstep"].as_str().and_then(|n| n.parse().ok()).expect("a number");
            assert!(number > last, "{line}");
            assert_eq!(data["totalsteps"], "19");
            last = number;
        }
    }
    assert_eq!(last, 19, "the last step is Done");
    let audit = std::fs::read_to_string(mk.home().join("logs/audit.json")).expect("the audit log");
    assert!(audit.contains("testUser") && audit.contains("io.k8s.sigs.minikube.audit"), "{audit}");
    assert!(mk.home().join("logs/lastStart.txt").exists());
}

/// What skaffold and Tilt look at before they believe that a context is minikube's.
fn tools_recognise_it(mk: &Minikube<'_>) {
    assert!(mk.line("version").ok().stdout.starts_with("minikube version: v"));
    let version = mk.line("version -o json").ok().json();
    assert!(version.as_object().is_some_and(|v| v.values().all(Value::is_string)), "{version}");
    let config = mk.kubectl(&["config", "view", "-o", "json"]).ok().json();
    let authority = config["clusters"][0]["cluster"]["certificate-authority"].as_str().unwrap_or_default();
    assert!(authority.contains("/.minikube/"), "{authority}");
    assert_eq!(config["clusters"][0]["cluster"]["server"], format!("https://{VIP}:8443"));
    let profiles = mk.line("profile list -o json").ok().json();
    let profile = &profiles["valid"][0];
    assert_eq!((&profile["Name"], &profile["Status"]), (&"minikube".into(), &"HAppy".into()));
    let nodes = profile["Config"]["Nodes"].as_array().expect("nodes");
    assert_eq!(nodes.len(), 5);
    assert!(nodes.iter().all(|n| n["IP"].is_string() && n["Port"].is_number()), "{nodes:?}");
    assert_eq!(mk.line("status -o json").ok().json().as_array().map(Vec::len), Some(5));
    let one = mk.line("status -o json -n m04").ok().json();
    assert_eq!((&one["Name"], &one["Worker"]), (&"minikube-m04".into(), &true.into()));
    let table = mk.line("profile list").ok().stdout;
    assert!(table.lines().nth(3).is_some_and(|l| l.starts_with("│ minikube │ native │")), "{table}");
}

fn answers_are_fast(mk: &Minikube<'_>) {
    for line in ["status", "profile list -o json", "node list"] {
        let mut times: Vec<u128> = (0..10).map(|_| mk.line(line).ok().elapsed.as_millis()).collect();
        times.sort_unstable();
        println!("{line}: {} to {} ms, ten times", times[0], times[9]);
    }
}

fn files_are_copied(mk: &Minikube<'_>) {
    let (here, back) = (mk.lab.path("here.txt"), mk.lab.path("back.txt"));
    std::fs::write(&here, "a file").expect("write a file");
    mk.run(&["cp", &here.to_string_lossy(), "/home/docker/there.txt"]).ok();
    mk.line("cp minikube:/home/docker/there.txt m04:/var/tmp/new/dir/").ok();
    mk.run(&["cp", "m04:/var/tmp/new/dir/there.txt", &back.to_string_lossy()]).ok();
    assert_eq!(std::fs::read_to_string(back).expect("the copy"), "a file");
    mk.line("cp m04:/nowhere x").exit(35);
    mk.line("cp m09:/etc/hosts x").exit(85);
}

fn paused(mk: &Minikube<'_>) {
    mk.line("pause").ok();
    assert_eq!(mk.line("status -f {{.APIServer}}/{{.Kubelet}}").exit(2).text(), "Paused/Stopped");
    assert_eq!(
        mk.line("profile list -o json").ok().json()["valid"][0]["Status"],
        "Stopped",
        "as in minikube"
    );
    exit_codes::run(mk, When::Paused);
    eventually("what runs in other namespaces goes on", SOON, || http_get("192.168.49.200:80"));
    mk.line("unpause").ok();
    eventually("it goes on", SOON, || match mk.line("status") {
        ran if ran.code == 0 => Ok(()),
        ran => Err(ran.stdout),
    });
    mk.kubectl(&["get", "nodes"]).ok();
}

fn a_stop_comes_later(mk: &Minikube<'_>) {
    let pid = mk.home().join("profiles/minikube/pid");
    mk.line("stop --schedule=1h").ok();
    let written = std::fs::read_to_string(&pid).expect("a pid");
    assert!(written.bytes().all(|b| b.is_ascii_digit()), "{written:?}");
    assert!(mk.line("status").ok().stdout.contains("timeToStop: "));
    mk.line("stop --cancel-scheduled").ok();
    assert!(!pid.exists());
    eventually("who waited to stop it is gone", SOON, || {
        if PathBuf::from(format!("/proc/{written}/exe")).exists() { Err(written.clone()) } else { Ok(()) }
    });
    mk.line("stop --schedule=1s").ok();
    eventually("the cluster is stopped", SOON, || match mk.line("status -f {{.Host}}") {
        ran if ran.text() == "Stopped" => Ok(()),
        ran => Err(ran.stdout),
    });
    eventually("its context is gone", SOON, || match mk.kubectl(&["config", "get-contexts", "minikube"]) {
        ran if ran.code == 1 => Ok(()),
        ran => Err(ran.stdout),
    });
}
