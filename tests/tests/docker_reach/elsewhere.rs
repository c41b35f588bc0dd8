//! An engine on another host.

use std::time::{Duration, Instant};

use system_tests::{Engine, Lab, eventually};

use super::{engine, files, ours, page, ways};

/// An engine whose networks and files are not ours, behind SSH. Its API server is reached by a port of ours, which
/// belongs to no control plane.
#[test]
fn an_engine_elsewhere() {
    let mut lab = Lab::with_native();
    lab.engine = Some(Engine::far(&lab.path("e"), &lab.home()));
    let lab = lab;
    ways::no_way_by_ssh(&lab);
    let before = engine(&lab).greetings();
    assert!(before > 0, "those without an engine were let in");
    let authority = ours::authority(&lab);
    let started = lab.manykube(&["start", "--ha", "--driver=docker"]).ok();
    println!("start of 3 control planes, image brought: {:.1} s", started.elapsed.as_secs_f32());
    let servers = lab.kubectl(&["config", "view", "-o", "jsonpath={.clusters[*].cluster.server}"]).ok();
    assert!(servers.stdout.starts_with("https://127.0.0.1:"), "{}", servers.stdout);
    let nodes = lab.kubectl(&["get", "nodes", "--no-headers"]).ok();
    println!("kubectl get nodes: {:.2} s", nodes.elapsed.as_secs_f32());
    assert_eq!(nodes.stdout.lines().filter(|l| l.contains(" Ready ")).count(), 3, "{}", nodes.stdout);
    assert_eq!(lab.manykube(&["ssh", "-n", "m02", "--", "hostname"]).ok().text(), "minikube-m02");
    println!("status: {:.2} s", lab.manykube(&["status"]).ok().elapsed.as_secs_f32());
    let kept = ours::clusters(&lab);
    files::go_both_ways(&lab);
    page::by_service(&lab);

    engine(&lab).docker(&["kill", "minikube"]).ok();
    let killed = Instant::now();
    eventually("the API without the primary", Duration::from_secs(30), || {
        let asked = lab.kubectl(&["get", "--raw=/readyz"]);
        if asked.code == 0 { Ok(()) } else { Err(asked.stderr) }
    });
    println!("the API answered {:.1} s after its primary was killed", killed.elapsed().as_secs_f32());
    lab.manykube(&["start"]).ok();
    // Not one for every call of the engine, nor for every command: they meet.
    let greetings = engine(&lab).greetings() - before;
    println!("greetings of SSH: {greetings}");
    assert!(greetings <= 5, "{greetings}");
    ways::by_tls(&lab);

    let deleted = lab.manykube(&["delete", "--all", "--purge"]).exit(ours::GUEST_DELETION);
    assert!(deleted.stderr.contains("passed over: mine (this host), others"), "{}", deleted.stderr);
    assert!(authority.is_as_it_was() && kept.iter().all(ours::File::is_as_it_was));
    assert!(!lab.home().join("profiles/minikube").exists());
    for name in ["mine", "others"] {
        std::fs::remove_dir_all(lab.home().join("profiles").join(name)).expect("remove a profile");
    }
    lab.manykube(&["delete", "--all", "--purge"]).ok();
    assert!(!lab.home().exists());
    assert_eq!(engine(&lab).docker(&["ps", "--all", "--quiet"]).ok().text(), "");
    assert_eq!(engine(&lab).docker(&["volume", "ls", "--quiet"]).ok().text(), "");
    assert!(!std::fs::read_to_string(lab.kubeconfig()).expect("a kubeconfig").contains("minikube"));
}
