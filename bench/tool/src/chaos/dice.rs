//! What is broken next. No IO.

use std::time::Duration;

use fastrand::Rng;

/// A node, and whether it is as it should be.
#[derive(Debug, Clone)]
pub struct Health {
    pub machine: String,
    pub well: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    Wait(Duration),
    Strike(Strike),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Strike {
    pub kind: String,
    /// Of `manykube fault`.
    pub words: Vec<String>,
}

const KINDS: [&str; 6] = ["kill", "freeze", "cut", "cut-from", "loss", "kill-process"];
const PROGRAMS_OF_ALL: [&str; 3] = ["kubelet", "containerd", "kube-proxy"];
const PROGRAMS_OF_PLANES: [&str; 4] = ["etcd", "apiserver", "controller-manager", "scheduler"];
/// Before it is looked again whether somebody may be struck.
const LOOK: Duration = Duration::from_secs(1);

pub struct Dice {
    rng: Rng,
    /// The first so many machines are control planes.
    planes: usize,
    rest: bool,
}

impl Dice {
    pub fn new(seed: u64, planes: usize) -> Dice {
        Dice { rng: Rng::with_seed(seed), planes, rest: false }
    }

    /// Strikes and pauses in turn. A control plane is struck only if so many others are well that etcd keeps
    /// its majority; of all nodes at least one stays well, for the application.
    pub fn roll(&mut self, nodes: &[Health]) -> Act {
        self.rest = !self.rest;
        if !self.rest {
            return Act::Wait(Duration::from_millis(self.rng.u64(2_000..8_000)));
        }
        let victims = self.victims(nodes);
        let Some(&victim) = self.rng.choice(&victims) else {
            self.rest = false;
            return Act::Wait(LOOK);
        };
        Act::Strike(self.strike(victim, nodes))
    }

    fn victims(&self, nodes: &[Health]) -> Vec<usize> {
        let well = |range: &[Health]| range.iter().filter(|n| n.well).count();
        let spare_plane = well(&nodes[..self.planes]) > self.planes / 2 + 1;
        let spare_node = well(nodes) > 1;
        let may = |&i: &usize| nodes[i].well && spare_node && (i >= self.planes || spare_plane);
        (0..nodes.len()).filter(may).collect()
    }

    fn strike(&mut self, victim: usize, nodes: &[Health]) -> Strike {
        let machine = nodes[victim].machine.clone();
        let time = format!("--for={}s", self.rng.u32(3..25));
        let kind = KINDS[self.rng.usize(..KINDS.len())];
        let words = match kind {
            "cut-from" => {
                let others: Vec<&Health> = nodes.iter().filter(|n| n.machine != machine).collect();
                let other = &others[self.rng.usize(..others.len())].machine;
                vec!["cut".into(), machine, format!("--from={other}"), time]
            }
            "loss" => vec!["slow".into(), machine, format!("--loss={}", self.rng.u32(1..30)), time],
            "kill-process" => {
                let own = if victim < self.planes { &PROGRAMS_OF_PLANES[..] } else { &[] };
                let all: Vec<&str> = PROGRAMS_OF_ALL.iter().chain(own).copied().collect();
                let program = all[self.rng.usize(..all.len())].to_owned();
                let mut words = vec![kind.into(), machine, program];
                words.extend(self.rng.bool().then_some(time));
                words
            }
            _ => vec![kind.into(), machine, time],
        };
        Strike { kind: kind.to_owned(), words }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(well: &[bool]) -> Vec<Health> {
        well.iter().enumerate().map(|(i, well)| Health { machine: format!("n{i}"), well: *well }).collect()
    }

    #[test]
    fn the_same_seed_draws_the_same() {
        let all = nodes(&[true; 5]);
        let draw = |seed| {
            let mut dice = Dice::new(seed, 3);
            (0..100).map(|_| dice.roll(&all)).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn etcd_keeps_its_majority_and_the_application_a_node() {
        for seed in 0..200 {
            let mut dice = Dice::new(seed, 3);
            for case in [[true, false, true, true, true], [false, false, true, true, true]] {
                for _ in 0..20 {
                    if let Act::Strike(strike) = dice.roll(&nodes(&case)) {
                        assert!(["n3", "n4"].contains(&strike.words[1].as_str()), "{strike:?}");
                    }
                }
            }
            let last = nodes(&[false, false, false, false, true]);
            assert!((0..20).all(|_| matches!(dice.roll(&last), Act::Wait(_))));
        }
    }
}
