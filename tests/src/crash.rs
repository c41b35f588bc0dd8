//! Commands that are killed at places of the tester's choice, and run again.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Instant;

use crate::{Lab, Ran};

/// One command that is to be killed.
pub struct Victim {
    pub args: Vec<String>,
    way: Way,
    killed: usize,
}

enum Way {
    /// Each of these places has a run of its own.
    Each(Vec<String>),
    /// Killed, run again, killed further on, and so forth until it is let through: at every so-many-th place that
    /// no run came to before.
    Chain { every: usize, seen: PathBuf, numbered: bool },
}

/// Steps that a driver does.
const OF_DRIVERS: [&str; 9] = [
    "network-up",
    "create/",
    "create-member/",
    "configure/",
    "boot/",
    "power-off/",
    "network-down",
    "remove/",
    "forget-network",
];
/// No command has so many places: one that is killed more often never ends.
const MANY: usize = 300;

/// Whether every place has its turn, most of them in a run of their own, or a third of them in a chain; with an engine
/// these are the driver's steps.
pub fn all_of_them() -> bool {
    std::env::var("CRASH").is_ok_and(|v| v == "all")
}

impl Victim {
    /// To be killed at each place in a run of its own, the command is run once, undisturbed, to learn them.
    #[track_caller]
    pub fn new(lab: &Lab, args: &[&str]) -> Victim {
        if !all_of_them() {
            return Victim::in_chains(lab, args);
        }
        let log = lab.path("places");
        let _ = std::fs::remove_file(&log);
        run(lab, args, &[("MANYKUBE_CRASH_LOG", &log.to_string_lossy())]).ok();
        let all = std::fs::read_to_string(&log).expect("the places that were passed");
        // What is before one thing is after another.
        let places = all.lines().filter(|p| !p.contains(":before")).map(str::to_owned).collect();
        Victim { args: owned(args), way: Way::Each(places), killed: 0 }
    }

    /// For what would take too long with a run for each place.
    pub fn in_chains(lab: &Lab, args: &[&str]) -> Victim {
        // With an engine there are few that count.
        let every = if all_of_them() || lab.engine.is_some() { 1 } else { 3 };
        let name: String =
            args.join("-").chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
        let seen = lab.path(&format!("places-{name}"));
        // Of the same command before: in another state of the cluster it is another one.
        let _ = std::fs::remove_file(&seen);
        let way = Way::Chain { every, seen, numbered: !all_of_them() };
        Victim { args: owned(args), way, killed: 0 }
    }

    /// So many turns does it take until it was killed everywhere.
    pub fn turns(&self) -> usize {
        match &self.way {
            Way::Each(places) => places.len(),
            Way::Chain { .. } => 1,
        }
    }

    /// Kills it where it is its turn to, and lets it through: in a chain by the same command, else by `again`.
    #[track_caller]
    pub fn turn(&mut self, lab: &Lab, turn: usize, again: &[&str]) -> Ran {
        let at = match &self.way {
            Way::Each(places) => places.get(turn).cloned(),
            Way::Chain { .. } => return self.chain(lab),
        };
        let Some(place) = at else { return run(lab, again, &[]) };
        let how = how(turn);
        let ran = run(lab, &self.words(), &[("MANYKUBE_CRASH_AT", &place), ("MANYKUBE_CRASH_HOW", how)]);
        if ran.code != KILLED {
            assert!(ran.code == 0 || ran.code == NOT_THERE, "{ran:?}");
            println!("not passed any more: {place}");
            return ran;
        }
        self.tell(how, &place, &ran);
        run(lab, again, &[])
    }

    #[track_caller]
    fn chain(&mut self, lab: &Lab) -> Ran {
        let Way::Chain { every, seen, numbered } = &self.way else { unreachable!("another way") };
        let (every, seen, numbered) = (*every, seen.clone(), *numbered);
        let of = if lab.engine.is_some() && !all_of_them() { OF_DRIVERS.join(",") } else { String::new() };
        for index in 0..MANY {
            let how = how(index);
            let log = seen.to_string_lossy();
            // One that passes few is killed as well.
            let next = if index == 0 { "1".to_owned() } else { every.to_string() };
            let environment = [
                ("MANYKUBE_CRASH_NEXT", next.as_str()),
                ("MANYKUBE_CRASH_OF", of.as_str()),
                ("MANYKUBE_CRASH_LOG", &log),
                ("MANYKUBE_CRASH_HOW", how),
            ];
            let ran = run(lab, &self.words(), &environment);
            if ran.code != KILLED {
                assert!(ran.code == 0 || ran.code == NOT_THERE, "{ran:?}");
                return ran;
            }
            let passed = std::fs::read_to_string(&seen).expect("the places that were passed");
            // Steps run at the same time: another's line may have come behind it.
            self.tell(how, passed.lines().last().unwrap_or_default(), &ran);
            if !numbered {
                std::fs::write(&seen, with_numbers(&passed)).expect("write down places");
            }
        }
        panic!("{} was killed {MANY} times and passes new places still", self.args.join(" "))
    }

    fn words(&self) -> Vec<&str> {
        self.args.iter().map(String::as_str).collect()
    }

    fn tell(&mut self, how: &str, place: &str, ran: &Ran) {
        self.killed += 1;
        let seconds = ran.elapsed.as_secs_f32();
        println!("killed ({how}) at {place} of {} after {seconds:.1} s", self.args.join(" "));
    }

    pub fn killed(&self) -> usize {
        self.killed
    }
}

/// Runs a command that is to be killed at this very place.
#[track_caller]
pub fn killed_at(lab: &Lab, args: &[&str], place: &str) {
    let ran = run(lab, args, &[("MANYKUBE_CRASH_AT", place)]);
    assert_eq!(ran.code, KILLED, "not killed at {place}: {ran:?}");
    println!("killed at {place} of {} after {:.1} s", args.join(" "), ran.elapsed.as_secs_f32());
}

/// A file that each node has is written by steps that run at the same time: the first of them stands for all.
fn with_numbers(passed: &str) -> String {
    let files = passed.lines().filter(|p| p.starts_with("write/") && !p.contains('#'));
    let others = files.flat_map(|p| (2..10).map(move |n| format!("{p}#{n}\n")));
    passed.lines().map(|p| format!("{p}\n")).chain(others).collect()
}

/// Every fourth kill takes along all that the command has started.
fn how(index: usize) -> &'static str {
    if index % 4 == 3 { "all" } else { "self" }
}

fn owned(args: &[&str]) -> Vec<String> {
    args.iter().map(|a| (*a).to_owned()).collect()
}

/// No code: it was ended by a signal.
const KILLED: i32 = -1;
/// What was to be removed is gone already.
pub const NOT_THERE: i32 = 80;

fn run(lab: &Lab, args: &[&str], environment: &[(&str, &str)]) -> Ran {
    let began = Instant::now();
    let mut command = lab.command(args);
    command.envs(environment.iter().copied()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = command.output().expect("run manykube");
    Ran::new(format!("manykube {}", args.join(" ")), output, began.elapsed())
}
