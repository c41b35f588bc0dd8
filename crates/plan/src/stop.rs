//! Taking a cluster down, for a while or for good.

use crate::observed::{MachineState, Observed};
use crate::step::{Plan, Step, phase};

/// Keeps all state. The network goes last: what powers off may still have something to say.
pub fn stop(observed: &Observed) -> Plan {
    let running = observed.nodes.iter().filter(|(_, n)| n.machine == MachineState::Running);
    Plan::default()
        .phase(phase::POWER_OFF, running.map(|(m, _)| Step::PowerOff(m.clone())).collect())
        .phase(phase::HOST, if observed.network { vec![Step::NetworkDown] } else { vec![] })
}

/// Removes every machine of the profile, also ones that are not in its configuration.
pub fn delete<'a>(machines: impl Iterator<Item = &'a String>) -> Plan {
    Plan::default()
        .phase(phase::REMOVE, machines.map(|m| Step::RemoveMachine(m.clone())).collect())
        .phase(phase::HOST, vec![Step::ForgetNetwork])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::{World, cluster};

    #[test]
    fn stop_powers_off_what_runs() {
        let cluster = cluster(2);
        let mut world = World::empty();
        world.run(&crate::start(&cluster, &world.observe()), usize::MAX);
        let plan = stop(&world.observe());
        assert_eq!(
            plan.to_string(),
            " 1. Powering off: power off (minikube); power off (minikube-m02)\n \
             2. Cleaning up the host: take the network down"
        );
        world.run(&plan, usize::MAX);
        assert!(world.observe().nodes.values().all(|n| n.machine == MachineState::Stopped));
    }

    #[test]
    fn delete_leaves_nothing() {
        let cluster = cluster(2);
        let mut world = World::empty();
        world.run(&crate::start(&cluster, &world.observe()), 9);
        world.run(&delete(world.observe().nodes.keys()), usize::MAX);
        let left = world.observe();
        assert!(left.nodes.is_empty() && !left.network);
    }
}
