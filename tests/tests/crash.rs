//! The crash matrix: every command that changes something, killed at every place that it passes (each step
//! of its plan before and after, each file before, midway and after), is finished by the same command.
//!
//! `make test` kills at a third of the places, many in one run; `make test-crash` (CRASH=all) at all of them,
//! each in a run of its own, with a look at the whole cluster after each.

use system_tests::crash::{NOT_THERE, Victim, all_of_them};
use system_tests::{Footprint, Lab, health};

#[test]
fn a_fresh_start_and_its_deletion() {
    start_and_delete(&["start"]);
}

#[test]
fn a_fresh_start_of_three_control_planes() {
    start_and_delete(&["start", "--ha"]);
}

fn start_and_delete(args: &[&str]) {
    let lab = Lab::new();
    let mut start = Victim::study(&lab, args);
    health::check(&lab);
    let mut delete = Victim::study(&lab, &["delete"]);
    let turns = start.turns().max(delete.turns());
    for turn in 0..turns {
        start.turn(&lab, turn, args).ok();
        health::check(&lab);
        delete.turn(&lab, turn, &["delete"]).ok();
        gone(&lab);
    }
    tell(&args.join(" "), &[&start, &delete]);
}

/// A bad name for a new node.
const EXISTS: i32 = 14;

/// Of the cluster; what all clusters share stays.
fn gone(lab: &Lab) {
    let left = |dir: &str| {
        let entries = std::fs::read_dir(lab.home().join(dir)).into_iter().flatten().flatten();
        entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect::<Vec<_>>()
    };
    for dir in ["machines", "profiles", "networks"] {
        assert_eq!(left(dir), Vec::<String>::new(), "{dir} after delete");
    }
    assert!(!left("locks").contains(&"minikube.lock".to_owned()), "{:?}", left("locks"));
    health::nothing_lies_about(lab);
}

#[test]
fn stops_and_starts_and_changes_by_file() {
    let lab = Lab::new();
    lab.manykube(&["start"]).ok();
    cycle(&lab, &[&["stop"], &["start"]]);
    let [more, less] = files(&lab);
    cycle(&lab, &[&["start", "-f", &more], &["start", "--yes", "-f", &less]]);
}

#[test]
fn workers_that_come_and_go() {
    let lab = Lab::new();
    lab.manykube(&["start"]).ok();
    cycle(
        &lab,
        &[
            &["node", "add", "w"],
            &["node", "stop", "w"],
            &["node", "start", "w"],
            &["node", "set", "w", "--labels=colour=green", "--extra-config=kubelet.max-pods=50"],
            &["node", "set", "w", "--labels=colour=red", "--extra-config=kubelet.max-pods=51"],
            &["node", "delete", "w"],
        ],
    );
}

#[test]
fn control_planes_that_come_and_go() {
    let lab = Lab::new();
    let before = Footprint::take();
    lab.manykube(&["start"]).ok();
    cycle(
        &lab,
        &[
            &["node", "add", "c", "--control-plane"],
            &["node", "stop", "c"],
            &["node", "start", "c"],
            &["node", "delete", "c"],
        ],
    );
    lab.manykube(&["delete"]).ok();
    if !all_of_them() {
        before.assert_nothing_left();
    }
}

/// Of a cluster with a worker and a label more, and without them.
fn files(lab: &Lab) -> [String; 2] {
    let file = |name: &str, rest: &str| {
        let text = format!("apiVersion: manykube.dev/v1\nkind: Cluster\nname: minikube\nnodes:\n{rest}");
        let path = lab.path(name);
        std::fs::write(&path, text).expect("write a cluster file");
        path.to_string_lossy().into_owned()
    };
    let worker = "- {role: control-plane, labels: {colour: green}}\n- {name: f, extraConfig: {kubelet: {max-pods: 50}}}\n";
    [file("more.yaml", worker), file("less.yaml", "- role: control-plane\n")]
}

/// The commands one after the other, each killed and run again, as often as it takes.
fn cycle(lab: &Lab, commands: &[&[&str]]) {
    let mut victims: Vec<Victim> = commands.iter().map(|args| Victim::study(lab, args)).collect();
    health::check(lab);
    let turns = victims.iter().map(Victim::turns).max().unwrap_or(0);
    for turn in 0..turns {
        for victim in &mut victims {
            let args: Vec<String> = victim.args.clone();
            let again: Vec<&str> = args.iter().map(String::as_str).collect();
            // `start` finishes what was begun as well; what there is to say to the same command then depends.
            let by_start = all_of_them() && turn % 3 == 2;
            let ran = victim.turn(lab, turn, if by_start { &["start"] } else { &again });
            let removes = again.contains(&"delete");
            // The last thing that a deletion does is to forget: killed after that, all is done.
            assert!(ran.code == 0 || removes && ran.code == NOT_THERE, "{ran:?}");
            if by_start {
                health::check(lab);
                let ran = lab.manykube(&again);
                let there = again.contains(&"add") && ran.code == EXISTS;
                assert!(ran.code == 0 || there || removes && ran.code == NOT_THERE, "{ran:?}");
            }
            if !again.contains(&"stop") {
                health::check(lab);
            }
        }
    }
    let all: Vec<&Victim> = victims.iter().collect();
    tell("", &all);
}

fn tell(of: &str, victims: &[&Victim]) {
    for victim in victims {
        let of =
            if of.is_empty() || victim.args.join(" ") == of { String::new() } else { format!(" after {of}") };
        println!("crash matrix: {}{of}: {} kills, 0 failures", victim.args.join(" "), victim.killed());
    }
}
