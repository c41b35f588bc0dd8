//! Nodes that are containers of podman's service: the same driver, another engine.

use std::time::Duration;

use system_tests::{Lab, Podman, eventually};

#[test]
fn nodes_of_podmans() {
    let mut lab = Lab::with_native();
    let absent = lab.manykube(&["start", "--driver=podman"]).exit(55);
    assert!(absent.stderr.contains("podman's service cannot be reached"), "{}", absent.stderr);
    lab.podman = Some(Podman::start(&lab.path("p")));
    let started = lab.manykube(&["start", "--driver=podman", "--nodes=2"]).ok();
    println!("start of 2 nodes, image brought: {:.1} s", started.elapsed.as_secs_f32());
    assert!(
        started.stdout.contains("podman driver") && started.stdout.contains("send system"),
        "{started:?}"
    );
    all_is_well(&lab);
    let addresses = lab.manykube(&["node", "list"]).ok().stdout;

    // Somebody removes one behind our back.
    podman(&lab, &["rm", "-f", "minikube-m02"]);
    lab.manykube(&["start"]).ok();
    all_is_well(&lab);
    lab.manykube(&["stop"]).ok();
    lab.manykube(&["start"]).ok();
    all_is_well(&lab);
    assert_eq!(lab.manykube(&["node", "list"]).ok().stdout, addresses);

    lab.manykube(&["delete"]).ok();
    assert_eq!(podman(&lab, &["ps", "-aq"]), "");
    assert!(!podman(&lab, &["network", "ls", "-q"]).lines().any(|n| n == "minikube"));
}

fn podman(lab: &Lab, args: &[&str]) -> String {
    lab.podman.as_ref().expect("the lab has one").podman(args).ok().stdout
}

fn all_is_well(lab: &Lab) {
    eventually("two nodes Ready", Duration::from_secs(30), || {
        let nodes = lab.kubectl(&["get", "nodes", "--no-headers"]).ok();
        let ready = nodes.stdout.lines().filter(|l| l.contains(" Ready ")).count();
        if ready == 2 { Ok(()) } else { Err(nodes.stdout) }
    });
    assert_eq!(lab.manykube(&["ssh", "-n", "m02", "--", "hostname"]).ok().text(), "minikube-m02");
    lab.nothing_to_do();
}
