//! A start that is cut short, at any time and in any way, is finished by the next one.

use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use system_tests::{Footprint, Lab, Machine, eventually};

/// From "nothing is there" to "waiting for pods": one moment in each phase of a start.
const MOMENTS_MS: [u64; 6] = [5, 60, 200, 500, 2500, 6000];

#[test]
fn killed_starts_are_finished_by_the_next() {
    let lab = Lab::new();
    let before = Footprint::take();
    for moment in MOMENTS_MS {
        let mut start = lab.spawn(&["start"]);
        std::thread::sleep(Duration::from_millis(moment));
        start.kill().expect("kill -9");
        start.wait().expect("wait for the killed start");
    }
    lab.manykube(&["start"]).ok();
    lab.manykube(&["status"]).ok();
    lab.nothing_to_do();
    lab.kubectl(&["wait", "--for=condition=Ready", "node/minikube", "--timeout=1s"]).ok();

    // Power loss: the init of the node dies, and with it everything in it.
    let machine = Machine::find(&lab, "minikube").expect("the machine runs");
    machine.kill();
    eventually("the dead are buried", Duration::from_secs(60), || {
        if machine.is_gone() { Ok(()) } else { Err(format!("{machine:?}")) }
    });
    lab.manykube(&["status"]).exit(7);
    lab.manykube(&["start"]).ok();
    lab.manykube(&["status"]).ok();

    lab.manykube(&["delete"]).ok();
    before.assert_nothing_left();
}

#[test]
fn ctrl_c_ends_soon_and_says_what_to_do() {
    let lab = Lab::new();
    for moment in [20, 150, 3000] {
        let mut command = lab.command(&["start"]);
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        let start = command.spawn().expect("start manykube");
        std::thread::sleep(Duration::from_millis(moment));
        let pid = Pid::from_raw(i32::try_from(start.id()).expect("a pid"));
        kill(pid, Signal::SIGINT).expect("Ctrl-C");
        let asked = Instant::now();
        let output = start.wait_with_output().expect("wait for the interrupted start");
        let (took, stderr) = (asked.elapsed(), String::from_utf8_lossy(&output.stderr).into_owned());
        println!("interrupted at {moment} ms, ended {} ms later", took.as_millis());
        assert_eq!(output.status.code(), Some(130), "{stderr}");
        assert!(stderr.contains("manykube start"), "does not say how to carry on: {stderr}");
    }
    lab.manykube(&["start"]).ok();
    lab.manykube(&["status"]).ok();
}
