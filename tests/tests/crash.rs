//! The crash matrix: every command that changes something, killed at every place that it passes (after each step
//! of its plan, midway in and after each file), is finished by the same command.
//!
//! `make test` kills at a third of the places, in chains (killed, run again, killed further on), and with the docker
//! driver after each step that is the driver's; `make test-crash` (CRASH=all) at all of them, each in a run of its own
//! (but for the start of three control planes, which is killed in chains), with a look at the whole cluster after each.

use std::process::Command;

use system_tests::crash::{NOT_THERE, Victim, all_of_them, killed_at};
use system_tests::{Engine, Footprint, Lab, health};

/// One cluster, from its start to its end, with all that may be changed in between.
#[test]
fn a_cluster_from_its_start_to_its_end() {
    let lab = Lab::new();
    let before = Footprint::take(&lab);
    let (up, down) = (["start"], ["delete"]);
    let mut start = Victim::new(&lab, &up);
    let mut delete = Victim::new(&lab, &down);
    let turns = start.turns().max(delete.turns());
    for turn in 0..turns {
        start.turn(&lab, turn, &up).ok();
        health::check(&lab);
        if turn + 1 == turns {
            changes(&lab);
        }
        delete.turn(&lab, turn, &down).ok();
        gone(&lab);
    }
    tell(&[&start, &delete]);
    if !all_of_them() {
        before.assert_nothing_left();
    }
}

fn changes(lab: &Lab) {
    cycle(lab, &[&["stop"], &["start"]]);
    let set = |colour: &str, pods: u32| {
        let labels = format!("--labels=colour={colour}");
        ["node", "set", "w", &labels, &format!("--extra-config=kubelet.max-pods={pods}")].map(str::to_owned)
    };
    let (green, red) = (set("green", 50), set("red", 51));
    let [green, red] = [&green, &red].map(|words| words.each_ref().map(String::as_str));
    let mut worker: Vec<&[&str]> =
        vec![&["node", "add", "w"], &["node", "stop", "w"], &["node", "start", "w"], &green];
    if all_of_them() {
        // Who is to be killed in it again and again finds something to change each time.
        worker.push(&red);
    }
    worker.push(&["node", "delete", "w"]);
    cycle(lab, &worker);
    if !all_of_them()
        && lab.skips_on_docker("files, control planes", "their steps of the driver are those of workers")
    {
        return;
    }
    let [more, less] = files(lab);
    cycle(lab, &[&["start", "-f", &more], &["start", "--yes", "-f", &less]]);
    let plane: [&[&str]; 4] = [
        &["node", "add", "c", "--control-plane"],
        &["node", "stop", "c"],
        &["node", "start", "c"],
        &["node", "delete", "c"],
    ];
    cycle(lab, &plane);
    while_etcd_is_told(lab);
}

/// Between a note, etcd's answer and the next note, with a stop of the whole cluster in between: then only etcd knows
/// whether the second control plane votes, and it answers only with that vote.
fn while_etcd_is_told(lab: &Lab) {
    let (added, promoted) = ("etcd-added/minikube-c:after", "etcd-promoted/minikube-c:after");
    let (noted, forgot) = ("write/minikube-c:after", "etcd-forgot/minikube-c:after");
    let (add, stop) = (["node", "add", "c", "--control-plane"], ["node", "stop", "c"]);
    let (start, delete) = (["node", "start", "c"], ["node", "delete", "c"]);
    let mut kills: Vec<(&[&str], &str)> = vec![(&add, added), (&stop, noted), (&stop, forgot)];
    if all_of_them() {
        kills.extend([
            (&start[..], forgot),
            (&start, added),
            (&start, promoted),
            (&delete, noted),
            (&delete, forgot),
        ]);
    }
    for (args, place) in &kills {
        if *args == start {
            lab.manykube(&stop).ok();
        }
        killed_at(lab, args, place);
        lab.manykube(&["stop"]).ok();
        lab.manykube(&["start"]).ok();
        health::check(lab);
    }
    println!("crash matrix: while etcd is told: {} kills, 0 failures", kills.len());
    lab.manykube(&delete).ok();
    health::check(lab);
}

#[test]
fn a_fresh_start_of_three_control_planes() {
    if Lab::is_on_docker() && !all_of_them() {
        println!(
            "left out on docker: a start of three control planes: its steps of the driver are those of one node"
        );
        return;
    }
    let (lab, args) = (Lab::new(), ["start", "--ha"]);
    let mut start = Victim::in_chains(&lab, &args);
    let mut delete = Victim::in_chains(&lab, &["delete"]);
    loop {
        let before = start.killed() + delete.killed();
        start.turn(&lab, 0, &args).ok();
        health::check(&lab);
        delete.turn(&lab, 0, &["delete"]).ok();
        gone(&lab);
        // What was done by the run before is not passed again: another chain may find more.
        if !all_of_them() || start.killed() + delete.killed() == before {
            break;
        }
    }
    tell(&[&start, &delete]);
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
    let mut victims: Vec<Victim> = commands.iter().map(|args| Victim::new(lab, args)).collect();
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
    tell(&victims.iter().collect::<Vec<_>>());
}

fn tell(victims: &[&Victim]) {
    for victim in victims {
        assert!(victim.killed() > 0, "{} was never killed", victim.args.join(" "));
        println!("crash matrix: {}: {} kills, 0 failures", victim.args.join(" "), victim.killed());
    }
}
