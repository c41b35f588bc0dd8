//! A start that is cut short, at any time and in any way, is finished by the next one.

use std::os::unix::process::ExitStatusExt as _;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use system_tests::{Footprint, Lab, eventually, health};

/// From "nothing is there" to "waiting for pods": one moment in each phase of a start, killed or interrupted.
const MOMENTS: [(u64, Signal); 9] = [
    (5, Signal::SIGKILL),
    (20, Signal::SIGINT),
    (60, Signal::SIGKILL),
    (150, Signal::SIGINT),
    (200, Signal::SIGKILL),
    (500, Signal::SIGKILL),
    (3000, Signal::SIGINT),
    (2500, Signal::SIGKILL),
    (4000, Signal::SIGKILL),
];

#[test]
fn what_is_cut_short_is_finished_by_the_next() {
    let lab = Lab::new();
    let before = Footprint::take(&lab);
    for (moment, signal) in MOMENTS {
        let cut_short = interrupted(&lab, &["start"], moment, signal);
        assert!(cut_short || signal == Signal::SIGKILL, "done within {moment} ms");
    }
    lab.manykube(&["start"]).ok();
    health::check(&lab);
    // On a fast host a command may be done before; then there is nothing to interrupt.
    for args in
        [&["node", "add", "w"][..], &["node", "stop", "w"], &["node", "start", "w"], &["node", "delete", "w"]]
    {
        let cut_short = interrupted(&lab, args, 150, Signal::SIGTERM);
        if cut_short {
            lab.manykube(args).ok();
        }
    }
    health::check(&lab);
    for args in [&["stop"][..], &["start"]] {
        interrupted(&lab, args, 150, Signal::SIGINT);
        lab.manykube(args).ok();
    }
    health::check(&lab);
    interrupted(&lab, &["delete"], 100, Signal::SIGTERM);
    lab.manykube(&["delete"]).ok();
    before.assert_nothing_left();
}

/// Whether there was something to interrupt.
fn interrupted(lab: &Lab, args: &[&str], moment: u64, signal: Signal) -> bool {
    let mut command = lab.command(args);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let running = command.spawn().expect("start manykube");
    std::thread::sleep(Duration::from_millis(moment));
    let pid = Pid::from_raw(i32::try_from(running.id()).expect("a pid"));
    // One that has ended is not buried before it is waited for, so that this is nobody else.
    kill(pid, signal).expect("interrupt it");
    let asked = Instant::now();
    let output = running.wait_with_output().expect("wait for the interrupted command");
    let (took, stderr) = (asked.elapsed(), String::from_utf8_lossy(&output.stderr).into_owned());
    println!("{} interrupted at {moment} ms, ended {} ms later", args.join(" "), took.as_millis());
    if output.status.code() == Some(0) {
        return false;
    }
    // So soon that it had not begun: the kernel ended it, and there is nothing to say.
    if output.status.signal() == Some(signal as i32) {
        return true;
    }
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    let again = format!("manykube {}", args.join(" "));
    assert!(stderr.contains(&again), "does not say how to carry on: {stderr}");
    true
}

#[test]
fn the_second_command_waits_and_says_for_whom() {
    let lab = Lab::new();
    let mut first = lab.spawn(&["start"]);
    eventually("the first has the lock", Duration::from_secs(10), || {
        let text = std::fs::read_to_string(lab.home().join("locks/minikube.lock")).unwrap_or_default();
        if text.is_empty() { Err("nobody".into()) } else { Ok(()) }
    });
    let second = lab.manykube(&["delete", "--lock-timeout=200ms"]).exit(11);
    let holder = format!("process {} (manykube start)", first.id());
    assert!(second.stdout.contains(&holder) && second.stderr.contains(&holder), "{second:?}");
    first.kill().expect("kill -9");
    first.wait().expect("wait for the killed start");
    lab.manykube(&["delete", "--lock-timeout=5s"]).ok();
}
