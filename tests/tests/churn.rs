//! Nobody dies, but the machine is busy: a hundred pods come and go, and then every core has ten times
//! the work that it can do. The virtual address stays where it is, and no connection is reset.
//!
//! CHURN_SECONDS says for how long the cores are busy; `make churn` takes ten minutes.

use std::process::{Child, Command};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use system_tests::machine::holder;
use system_tests::traffic::{KINDS, Traffic};
use system_tests::{Footprint, Lab, eventually, rounds};

const SOON: Duration = Duration::from_secs(60);
const VIP: &str = "192.168.49.254";
const PODS: &str = "100";
/// Processes that want all of a core, for each core.
const TIMES: usize = 10;

#[test]
fn a_busy_machine_moves_nothing() {
    let lab = Lab::new();
    let before = Footprint::take(&lab);
    lab.manykube(&["start", "--ha", "--nodes=5"]).ok();
    lab.kubectl(&["wait", "--for=condition=Ready", "nodes", "--all", "--timeout=120s"]).ok();
    let traffic = Traffic::start(&lab, &format!("{VIP}:8443"));
    lab.nothing_to_do();
    traffic.calm(Duration::from_secs(3));
    lab.kubectl(&["create", "deployment", "churn", "--image", &lab.busybox(), "--", "sleep", "1000000"]).ok();

    calmly(&lab, &traffic, "pods come and go", || {
        for _ in 0..3 {
            pods_come_and_go(&lab);
        }
    });
    let time = Duration::from_secs(rounds("CHURN_SECONDS", 60) as u64);
    calmly(&lab, &traffic, "and every core is busy ten times over", || {
        let (_busy, began) = (Busy::begin(), Instant::now());
        while began.elapsed() < time {
            pods_come_and_go(&lab);
        }
    });

    println!("{} acknowledged writes, none lost", traffic.nothing_is_lost(&lab));
    lab.manykube(&["delete"]).ok();
    before.assert_nothing_left();
}

/// The same holder by the same election before and after, and no client's connection is reset.
#[track_caller]
fn calmly(lab: &Lab, traffic: &Traffic, what: &str, work: impl FnOnce()) {
    let (had, began) = (holder(lab, VIP), Instant::now());
    let term = had.term();
    work();
    let reasons = traffic.reasons(began);
    let gaps = KINDS.map(|kind| traffic.disturbance(kind, began).gap.as_millis());
    println!(
        "{what}: {:.0} s; without an answer for at most {gaps:?} ms; {reasons:?}",
        began.elapsed().as_secs_f32()
    );
    let now = holder(lab, VIP);
    assert_eq!((&now.name, now.term()), (&had.name, term), "{what}: the address moved");
    let resets: Vec<_> = reasons.iter().filter(|(why, _)| why.contains("reset")).collect();
    assert!(resets.is_empty(), "{what}: {resets:?}");
}

fn pods_come_and_go(lab: &Lab) {
    for replicas in [PODS, "0"] {
        lab.kubectl(&["scale", "deployment/churn", "--replicas", replicas]).ok();
        eventually("as many pods as asked for are ready", SOON * 10, || {
            let ready = "jsonpath={.status.readyReplicas}/{.status.replicas}";
            let ran = lab.kubectl(&["get", "deployment/churn", "-o", ready]);
            let wanted = if replicas == "0" { "/".to_owned() } else { format!("{replicas}/{replicas}") };
            if ran.stdout == wanted { Ok(()) } else { Err(format!("{}{}", ran.stdout, ran.stderr)) }
        });
    }
    eventually("the pods have gone", SOON * 10, || {
        let ran = lab.kubectl(&["get", "pods", "-l", "app=churn", "-o", "name"]);
        if ran.code == 0 && ran.stdout.is_empty() {
            Ok(())
        } else {
            Err(format!("{} are left", ran.stdout.lines().count()))
        }
    });
}

/// In a session of their own, as one command of a user's other terminal.
struct Busy(Child);

impl Busy {
    fn begin() -> Busy {
        let cores = std::thread::available_parallelism().expect("the number of cores").get();
        let script = format!("for n in $(seq {}); do while :; do :; done & done; wait", cores * TIMES);
        Busy(Command::new("setsid").args(["sh", "-c", &script]).spawn().expect("start the busy processes"))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let group = i32::try_from(self.0.id()).expect("a process id");
        let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
        let _ = self.0.wait();
    }
}
