//! Commands that are killed at places of the tester's choice, and run again.

use std::process::Stdio;
use std::time::Instant;

use crate::{Lab, Ran};

/// One command, and the places at which it is to be killed.
pub struct Victim {
    pub args: Vec<String>,
    places: Vec<String>,
    /// Killed, run again, killed further on, and so forth until it is let through; else each place has a run of
    /// its own.
    chain: bool,
    killed: usize,
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

/// Whether every place has its turn, most of them in a run of their own, or a third of them in a chain; with an engine
/// these are the driver's steps.
pub fn all_of_them() -> bool {
    std::env::var("CRASH").is_ok_and(|v| v == "all")
}

impl Victim {
    /// Runs the command once, undisturbed, to learn which places it passes.
    #[track_caller]
    pub fn study(lab: &Lab, args: &[&str]) -> Victim {
        let log = lab.path("places");
        let _ = std::fs::remove_file(&log);
        run(lab, args, &[("MANYKUBE_CRASH_LOG", &log.to_string_lossy())]).ok();
        let all = std::fs::read_to_string(&log).expect("the places that were passed");
        let mut places: Vec<String> = all.lines().map(str::to_owned).collect();
        // What is before one thing is after another.
        places.retain(|p| !p.contains(":before"));
        if !all_of_them() {
            match lab.engine {
                // Files are the same with every driver.
                Some(_) => places.retain(|p| OF_DRIVERS.iter().any(|step| p.starts_with(step))),
                None => places = places.into_iter().step_by(3).collect(),
            }
        }
        Victim {
            args: args.iter().map(|a| (*a).to_owned()).collect(),
            places,
            chain: !all_of_them(),
            killed: 0,
        }
    }

    /// In chains, as many as it takes: for what would take too long with a run for each place. A file that each
    /// node has is written by steps that run at the same time: the first of them stands for all.
    pub fn in_chains(mut self) -> Victim {
        self.places.retain(|p| !(p.starts_with("write/") && p.contains('#')));
        Victim { chain: true, ..self }
    }

    /// Places of chains that no run has come to yet.
    pub fn left(&self) -> usize {
        self.places.len()
    }

    /// So many turns does it take until it was killed everywhere.
    pub fn turns(&self) -> usize {
        if self.chain { 1 } else { self.places.len() }
    }

    /// Kills it where it is its turn to, and lets it through. Every fourth kill takes along all that
    /// the command has started.
    #[track_caller]
    pub fn turn(&mut self, lab: &Lab, turn: usize, again: &[&str]) -> Ran {
        let places: Vec<String> = match self.chain {
            true => self.places.clone(),
            false => self.places.get(turn).cloned().into_iter().collect(),
        };
        let (mut places, mut index) = (places, 0);
        // At whichever of them comes first: what was done by the run before is not passed again.
        while !places.is_empty() {
            let how = if (turn + index) % 4 == 3 { "all" } else { "self" };
            let args: Vec<&str> = self.args.iter().map(String::as_str).collect();
            let (log, began) = (lab.path("places"), Instant::now());
            let _ = std::fs::remove_file(&log);
            let at = places.join(",");
            let environment = [
                ("MANYKUBE_CRASH_AT", at.as_str()),
                ("MANYKUBE_CRASH_HOW", how),
                ("MANYKUBE_CRASH_LOG", &log.to_string_lossy()),
            ];
            let ran = run(lab, &args, &environment);
            let seconds = began.elapsed().as_secs_f32();
            if ran.code != KILLED {
                assert!(ran.code == 0 || ran.code == NOT_THERE, "{ran:?}");
                println!("not passed any more: {}", places.join(", "));
                if self.chain {
                    self.places = places;
                }
                return ran;
            }
            let passed = std::fs::read_to_string(&log).unwrap_or_default();
            // Steps run at the same time: the last line may be another one's.
            let Some(hit) = passed.lines().rev().find_map(|p| places.iter().position(|q| q == p)) else {
                panic!("killed, but at none of {at}")
            };
            let place = places.remove(hit);
            (self.killed, index) = (self.killed + 1, index + 1);
            println!("killed ({how}) at {place} of {} after {seconds:.1} s", args.join(" "));
        }
        if self.chain {
            self.places.clear();
        }
        run(lab, again, &[])
    }

    pub fn killed(&self) -> usize {
        self.killed
    }
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
