//! etcd has lost its majority for good: one control plane's data is taken, and the others join it again.

use model::Cluster;

use crate::observed::{MachineState, Observed};
use crate::step::{Plan, Step, phase};

/// Leaves a cluster of one control plane that is off, and others that have left: `start` does the rest. May be run
/// again at any time. The others' copies are given up only after the chosen one has served.
pub fn recover(desired: &Cluster, observed: &Observed, from: &str) -> Plan {
    let state = |m: &String| observed.nodes.get(m).map_or(MachineState::Absent, |n| n.machine);
    let running = observed.nodes.keys().filter(|m| state(m) == MachineState::Running).cloned();
    let planes = desired.control_planes().map(|n| desired.machine(n));
    let others = planes.filter(|m| m != from && state(m) != MachineState::Absent);
    Plan::default()
        .phase(phase::GROUND, vec![Step::Certificates, Step::NetworkUp])
        // Control planes, because two that still know each other would go on as they were. Workers too: etcd's
        // revisions go back, and a kubelet that has seen later ones would wait for them.
        .phase(phase::POWER_OFF, running.map(Step::PowerOff).collect())
        .phase(phase::RECOVER, vec![Step::RecoverEtcd(from.to_owned())])
        .phase(phase::RECOVER, others.map(Step::NoteLeft).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::{World, planes};

    #[test]
    fn from_one_of_three_to_three() {
        let cluster = planes(3, 4);
        let mut world = World::empty();
        world.run(&crate::start(&cluster, &world.observe()), usize::MAX);
        world.lose_data("minikube");
        world.lose_data("minikube-m03");
        let plan = recover(&cluster, &world.observe(), "minikube-m02");
        for limit in [3, 6, usize::MAX] {
            world.run(&recover(&cluster, &world.observe(), "minikube-m02"), limit);
        }
        assert_eq!(plan.phases.len(), 4, "{plan}");
        assert_eq!(world.voters(), 1);
        world.run(&crate::start(&cluster, &world.observe()), usize::MAX);
        assert_eq!(world.voters(), 3);
        assert!(crate::start(&cluster, &world.observe()).is_empty());
    }
}
