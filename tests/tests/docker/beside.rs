//! Native nodes beside a Docker engine, which has the host drop what nobody asked it to forward and shows it what
//! crosses bridges.

use std::process::Command;

use system_tests::{Engine, Footprint, Lab, Uplink, eventually};

use super::SOON;

const WORKER: &str = "192.168.49.3";
const OUTSIDE: &str = "198.51.100.1";
const CALL: &str = "/proc/sys/net/bridge/bridge-nf-call-iptables";

#[test]
fn native_nodes_beside_an_engine() {
    // The engine is a neighbour: clusters of this lab are not its containers.
    let lab = Lab::with_native();
    let mut engine = Engine::start(&lab.path("e"));
    let _uplink = Uplink::new();
    std::fs::write(CALL, "1").expect("what the engine does on hosts where it is a module");
    assert!(rules("iptables").contains("-P FORWARD DROP"), "the engine has not made it so");
    let (before, rules_before) = (Footprint::take(&lab), rules("iptables"));

    let started = lab.manykube(&["start", "--driver=native", "--nodes=2"]).ok();
    println!("start beside an engine: {:.1} s", started.elapsed.as_secs_f32());
    all_is_well(&lab);
    pods_hear_each_other(&lab);

    the_engine_is_restarted(&lab, &mut engine);
    rules_are_lost(&lab);
    the_kernel_cannot_bypass(&lab);
    the_older_iptables(&lab);

    lab.manykube(&["delete"]).ok();
    assert_eq!(rules("iptables"), rules_before);
    assert!(!rules("iptables-legacy").contains("mk-"), "{}", rules("iptables-legacy"));
    let after = Footprint::take(&lab);
    let left = |after: &_, before: &_| -> Vec<String> {
        std::collections::BTreeSet::difference(after, before).cloned().collect()
    };
    assert_eq!(left(&after.nft_tables, &before.nft_tables), Vec::<String>::new());
    assert_eq!(left(&after.links, &before.links), Vec::<String>::new());
}

fn run(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output().expect("run it");
    assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// By the host's own eyes.
fn rules(make: &str) -> String {
    run(make, &["-S", "FORWARD"])
}

fn reaches(lab: &Lab, address: &str) -> bool {
    lab.manykube(&["ssh", "--", "busybox", "ping", "-c1", "-W2", address]).code == 0
}

#[track_caller]
fn all_is_well(lab: &Lab) {
    let nodes = lab.kubectl(&["get", "nodes", "--no-headers"]).ok().stdout;
    assert_eq!(nodes.lines().filter(|l| l.contains(" Ready ")).count(), 2, "{nodes}");
    assert!(reaches(lab, WORKER), "the nodes do not hear each other");
    assert!(reaches(lab, OUTSIDE), "there is no way out");
    lab.nothing_to_do();
}

fn pods_hear_each_other(lab: &Lab) {
    let image = lab.busybox();
    let pod = |name: &str, node: &str, run: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{ name: {name} }}\nspec:\n  nodeName: {node}\n  \
             terminationGracePeriodSeconds: 0\n  containers:\n  - name: c\n    image: {image}\n    \
             command: [sh, -c, '{run}']\n---\n"
        )
    };
    let web = pod("web", "minikube-m02", "echo heard > /index.html; exec httpd -f -h /");
    lab.apply(&(web + &pod("client", "minikube", "exec sleep 1000000")));
    lab.kubectl(&["wait", "--for=condition=Ready", "pod/web", "pod/client", "--timeout=60s"]).ok();
    let address = lab.kubectl(&["get", "pod", "web", "-o", "jsonpath={.status.podIP}"]).ok().stdout;
    eventually("the pod on the other node", SOON, || {
        let url = format!("http://{address}");
        let ran = lab.kubectl(&["exec", "client", "--", "wget", "-T2", "-qO-", &url]);
        if ran.stdout.trim() == "heard" { Ok(()) } else { Err(ran.stderr) }
    });
    lab.kubectl(&["delete", "pod", "web", "client", "--wait=false"]).ok();
}

/// It makes its own rules anew and leaves ours.
fn the_engine_is_restarted(lab: &Lab, engine: &mut Engine) {
    engine.down();
    engine.up();
    run("iptables", &["-P", "FORWARD", "DROP"]);
    all_is_well(lab);
}

/// As a firewall does that is made anew.
fn lose_our_rules() {
    let rules = rules("iptables");
    let ours: Vec<&str> = rules.lines().filter(|rule| rule.contains("manykube-mk-")).collect();
    assert_eq!(ours.len(), 3, "{rules}");
    for rule in ours {
        let words: Vec<&str> = rule.split(' ').skip(1).collect();
        run("iptables", &[&["-D"], &words[..]].concat());
    }
}

/// The cluster lives on; the way out comes back with the next start.
fn rules_are_lost(lab: &Lab) {
    lose_our_rules();
    assert!(reaches(lab, WORKER), "the nodes do not hear each other");
    assert!(!reaches(lab, OUTSIDE), "the policy is to drop it");
    lab.manykube(&["start"]).ok();
    all_is_well(lab);
    // Somebody refuses in so many words, before us.
    run("iptables", &["-I", "FORWARD", "-j", "REJECT"]);
    lab.manykube(&["start"]).ok();
    all_is_well(lab);
    run("iptables", &["-D", "FORWARD", "-j", "REJECT"]);
}

/// Packets between nodes are shown to iptables, as with a kernel without BPF filters: the rules are enough.
fn the_kernel_cannot_bypass(lab: &Lab) {
    let links = run("ip", &["-o", "link"]);
    let cables: Vec<&str> = links
        .lines()
        .filter_map(|l| l.split(": ").nth(1)?.split('@').next())
        .filter(|n| n.starts_with("mkv-"))
        .collect();
    assert_eq!(cables.len(), 2, "{links}");
    for cable in &cables {
        run("tc", &["qdisc", "del", "dev", cable, "clsact"]);
    }
    all_is_well(lab);
    // They would not be without rules, or else this has shown nothing.
    lose_our_rules();
    assert!(!reaches(lab, WORKER), "nodes hear each other whatever iptables say");
    lab.manykube(&["start"]).ok();
    all_is_well(lab);
}

/// A host may use both makes of iptables, and each has its own rules.
fn the_older_iptables(lab: &Lab) {
    run("iptables-legacy", &["-P", "FORWARD", "DROP"]);
    assert!(!reaches(lab, OUTSIDE), "the policy is to drop it");
    lab.manykube(&["start"]).ok();
    all_is_well(lab);
}
