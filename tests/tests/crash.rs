//! The crash matrix: every command that changes something, killed at every place that it passes (after each step
//! of its plan, midway in and after each file), is finished by the same command.
//!
//! `make test` kills at a third of the places, many in one run, and with the docker driver after each step that is
//! the driver's; `make test-crash` (CRASH=all) at all of them,
//! each in a run of its own (but for the start of three control planes, which is killed in chains), with a look
//! at the whole cluster after each.

use std::process::Command;

use system_tests::crash::{NOT_THERE, Victim, all_of_them};
use system_tests::{Engine, Footprint, Lab, health};

#[test]
fn a_fresh_start_and_its_deletion() {
    start_and_delete(&["start"]);
}

#[test]
fn a_fresh_start_of_three_control_planes() {
    let (lab, args) = (Lab::new(), ["start", "--ha"]);
    if leaves_out(&lab, "a start of three control planes", "its steps of the driver are those of one node") {
        return;
    }
    let mut start = Victim::study(&lab, &args).in_chains();
    health::check(&lab);
    let mut delete = Victim::study(&lab, &["delete"]).in_chains();
    loop {
        let left = start.left() + delete.left();
        start.turn(&lab, 0, &args).ok();
        health::check(&lab);
        delete.turn(&lab, 0, &["delete"]).ok();
        gone(&lab);
        let now = start.left() + delete.left();
        if now == 0 || !all_of_them() {
            break;
        }
        assert!(now < left, "{now} places are never passed again");
    }
    tell(&args.join(" "), &[&start, &delete]);
}

/// A reduced matrix is about the driver, where that is another one.
fn leaves_out(lab: &Lab, what: &str, why: &str) -> bool {
    !all_of_them() && lab.skips_on_docker(what, why)
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
    assert_eq!(lab.engine.as_ref().map(Engine::left).unwrap_or_default(), "", "in the engine");
    health::nothing_lies_about(lab);
}

#[test]
fn stops_and_starts_and_changes_by_file() {
    let lab = Lab::new();
    lab.manykube(&["start"]).ok();
    cycle(&lab, &[&["stop"], &["start"]]);
    if leaves_out(&lab, "changes by file", "their steps of the driver are those of workers") {
        return;
    }
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
    if leaves_out(&lab, "control planes", "their steps of the driver are those of workers") {
        return;
    }
    let before = Footprint::take(&lab);
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

/// The parts come from this machine's cache, but for one that is compiled; what takes longest is to put them
/// together. Only with all others: it takes a minute.
#[test]
fn a_node_image_that_is_built() {
    if !all_of_them() {
        return;
    }
    let lab = Lab::new();
    let cache = lab.path("cache");
    std::fs::create_dir(&cache).expect("make a cache");
    let linked = Command::new("cp").arg("-al").arg(Lab::cache().join("build")).arg(&cache).status();
    assert!(linked.expect("run cp").success(), "link the parts");
    for part in std::fs::read_dir(cache.join("build")).expect("the parts").flatten() {
        if part.file_name().to_string_lossy().starts_with("pause-") {
            std::fs::remove_dir_all(part.path()).expect("take a part away");
        }
    }
    let build = |at: &str, delay: &str, how: &str| {
        let mut command = lab.command(&["node-image", "build"]);
        command.env("MANYKUBE_CACHE", &cache).env("MANYKUBE_CRASH_AT", at);
        command.env("MANYKUBE_CRASH_DELAY_MS", delay).env("MANYKUBE_CRASH_HOW", how);
        command.output().expect("run manykube")
    };
    let mut kills = 0;
    for (part, delay) in [("debian", "0"), ("pause", "20"), ("pause", "200"), ("kubernetes", "0")]
        .into_iter()
        .chain(["0", "300", "1000", "3000", "6000"].map(|delay| ("image", delay)))
    {
        for how in ["self", "all"] {
            let ended = build(&format!("image/{part}:before"), delay, how);
            assert!(!ended.status.success(), "{part} {delay}: {ended:?}");
            kills += usize::from(ended.status.code().is_none());
        }
    }
    let built = build("", "", "");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let verified = lab.command(&["node-image", "verify"]).env("MANYKUBE_CACHE", &cache).output();
    assert!(verified.expect("run manykube").status.success());
    let images = std::fs::read_dir(cache.join("node-images")).expect("images").flatten();
    let names: Vec<String> = images.map(|i| i.file_name().to_string_lossy().into_owned()).collect();
    assert!(names.len() == 1 && names[0].starts_with('v'), "{names:?}");
    println!("crash matrix: node-image build: {kills} kills, 0 failures");
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
