//! One node goes, for a while or for good. etcd never loses its majority by it, unless told to.

use std::fmt;

use model::Cluster;

use crate::observed::{Api, MachineState, Observed, ObservedNode};
use crate::step::{Plan, Step, phase};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leave {
    /// The machine stays, off. A worker stays in the API; a control plane has to join again.
    Stop,
    /// Nothing is left of it.
    Delete,
}

/// Of etcd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    pub machine: String,
    pub voter: bool,
    /// By its own word: what runs beside it does not count.
    pub healthy: bool,
}

/// Why a control plane may not leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    Last,
    /// etcd does not answer, or has no majority: it can agree on nothing, least of all on its members.
    NoQuorum,
    /// Of those left, too few live.
    WouldLoseQuorum {
        left: usize,
        healthy: usize,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Last => write!(f, "it is the last control plane"),
            Refusal::NoQuorum => write!(f, "etcd has no majority of its members, so none can be removed"),
            Refusal::WouldLoseQuorum { left, healthy } => {
                write!(
                    f,
                    "of the {left} members of etcd left only {healthy} would be healthy, and {} have to be",
                    majority(*left)
                )
            }
        }
    }
}

fn majority(members: usize) -> usize {
    members / 2 + 1
}

/// `members` is `None` when etcd could not be asked. With `force` the arithmetic here is left to etcd, which refuses
/// what would cost it its majority: a machine goes only after etcd has let its member go. The last control plane
/// never goes.
pub fn leave(
    desired: &Cluster,
    observed: &Observed,
    machine: &str,
    members: Option<&[Member]>,
    how: Leave,
    force: bool,
) -> Result<Plan, Refusal> {
    let absent = ObservedNode::absent();
    let node = observed.nodes.get(machine).unwrap_or(&absent);
    let control_plane = desired.control_planes().any(|n| desired.machine(n) == machine);
    if control_plane {
        match check(desired, machine, members) {
            Err(Refusal::Last) => return Err(Refusal::Last),
            Err(refusal) if !force => return Err(refusal),
            _ => {}
        }
    }
    let one =
        |step: fn(String) -> Step, when: bool| if when { vec![step(machine.to_owned())] } else { vec![] };
    let gone = how == Leave::Delete;
    // By force a node goes also without an API; then its entries there stay.
    let answers = |(m, n): (&String, &ObservedNode)| m != machine && n.api == Api::Ready;
    let api = !force || observed.nodes.iter().any(answers);
    let exists = node.machine != MachineState::Absent;
    let others = || desired.nodes.iter().map(|n| desired.machine(n)).filter(|m| m != machine);
    let has_machine = |m: &String| {
        observed.nodes.get(m).is_some_and(|n| n.machine != MachineState::Absent && n.membership.may_vote())
    };

    // Itself too, so that it lets go of the virtual address before its API server is cut from etcd.
    let told = others().chain([machine.to_owned()]).filter(has_machine);
    let tell: Vec<Step> = if gone || control_plane { told.map(Step::Peers).collect() } else { Vec::new() };
    let heir = desired.control_planes().map(|n| desired.machine(n)).find(|m| m != machine);
    let was_primary = desired.primary().is_some_and(|p| desired.machine(p) == machine);
    // One that is down is labelled when it comes up.
    let up = |m: &String| observed.nodes.get(m).is_some_and(|n| n.up);
    let heir = heir.filter(|m| gone && was_primary && api && up(m));
    Ok(Plan::default()
        .phase(phase::LEAVE, one(Step::Drain, gone && api && exists && node.up))
        .phase(phase::PEERS, tell)
        // While it lives: of two members both have to agree. Whatever the host's notes say, etcd is asked.
        .phase(phase::LEAVE, one(Step::RemoveMember, control_plane))
        .phase(phase::POWER_OFF, one(Step::PowerOff, node.machine == MachineState::Running))
        .phase(phase::REMOVE, one(Step::RemoveMachine, gone && exists))
        .phase(phase::LEAVE, one(Step::DeleteNode, gone && api))
        .phase(phase::CONFIGURE, heir.map(Step::AdoptNode).into_iter().collect()))
}

fn check(desired: &Cluster, machine: &str, members: Option<&[Member]>) -> Result<(), Refusal> {
    if desired.control_planes().count() == 1 {
        return Err(Refusal::Last);
    }
    let members = members.ok_or(Refusal::NoQuorum)?;
    let voters = || members.iter().filter(|m| m.voter);
    let healthy = voters().filter(|m| m.healthy).count();
    if healthy < majority(voters().count()) {
        return Err(Refusal::NoQuorum);
    }
    if !voters().any(|m| m.machine == machine) {
        return Ok(());
    }
    let left = voters().filter(|m| m.machine != machine).count();
    let healthy = voters().filter(|m| m.machine != machine && m.healthy).count();
    match left {
        0 => Err(Refusal::Last),
        _ if healthy < majority(left) => Err(Refusal::WouldLoseQuorum { left, healthy }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::{World, cluster, planes};
    use proptest::prelude::*;

    fn running(desired: &Cluster) -> World {
        let mut world = World::empty();
        world.run(&crate::start(desired, &world.observe()), usize::MAX);
        world
    }

    fn members(voters: &[(u32, bool)]) -> Vec<Member> {
        let member = |&(number, healthy): &(u32, bool)| Member {
            machine: model::names::machine("minikube", &model::names::node(number)),
            voter: true,
            healthy,
        };
        voters.iter().map(member).collect()
    }

    #[test]
    fn who_may_go() {
        let lose = |left, healthy| Err(Refusal::WouldLoseQuorum { left, healthy });
        for (voters, who, want) in [
            (vec![(1, true), (2, true)], 2, Ok(())),
            (vec![(1, true), (2, false)], 2, Err(Refusal::NoQuorum)),
            (vec![(1, true), (2, true), (3, true)], 1, Ok(())),
            (vec![(1, true), (2, true), (3, false)], 3, Ok(())),
            (vec![(1, true), (2, true), (3, false)], 2, lose(2, 1)),
            (vec![(1, true), (2, true), (3, true), (4, false), (5, false)], 1, lose(4, 2)),
            (vec![(1, true), (2, true), (3, true), (4, false), (5, false)], 5, Ok(())),
            (vec![(1, true), (3, true)], 2, Ok(())),
            (vec![(2, true)], 2, Err(Refusal::Last)),
        ] {
            let desired = planes(5, 5);
            let machine = desired.machine(&desired.nodes[who - 1]);
            assert_eq!(check(&desired, &machine, Some(&members(&voters))), want, "{voters:?} without {who}");
        }
        assert_eq!(check(&planes(1, 3), "minikube", None), Err(Refusal::Last));
        assert_eq!(check(&planes(3, 3), "minikube", None), Err(Refusal::NoQuorum));
    }

    #[test]
    fn the_primary_hands_over() {
        let desired = planes(3, 4);
        let world = running(&desired);
        let plan =
            leave(&desired, &world.observe(), "minikube", Some(&world.members()), Leave::Delete, false)
                .unwrap();
        assert_eq!(
            plan.to_string(),
            " 1. Leaving the cluster: move pods elsewhere (minikube)\n \
             2. Telling the nodes of each other: write the list of nodes (minikube-m02); \
             write the list of nodes (minikube-m03); write the list of nodes (minikube-m04); \
             write the list of nodes (minikube)\n \
             3. Leaving the cluster: leave etcd (minikube)\n \
             4. Powering off: power off (minikube)\n \
             5. Removing machines: remove the machine (minikube)\n \
             6. Leaving the cluster: remove the node from the API (minikube)\n \
             7. Configuring the cluster: label the node and give it its pod range (minikube-m02)"
        );
    }

    #[test]
    fn a_worker_has_no_vote() {
        let desired = cluster(2);
        let world = running(&desired);
        let plan = leave(&desired, &world.observe(), "minikube-m02", None, Leave::Stop, false).unwrap();
        assert_eq!(plan.to_string(), " 1. Powering off: power off (minikube-m02)");
    }

    /// Finding 2: a machine that etcd still counts on is not removed, by force neither.
    #[test]
    fn force_asks_etcd_first() {
        let desired = planes(2, 2);
        let world = running(&desired);
        let seen = world.observe();
        assert_eq!(
            leave(&desired, &seen, "minikube-m02", None, Leave::Delete, false),
            Err(Refusal::NoQuorum)
        );
        let plan = leave(&desired, &seen, "minikube-m02", None, Leave::Delete, true).unwrap();
        let at = |wanted: &Step| plan.steps().position(|s| s == wanted);
        let (left, removed) =
            (at(&Step::RemoveMember("minikube-m02".into())), at(&Step::RemoveMachine("minikube-m02".into())));
        assert!(left.is_some() && left < removed, "{plan}");
    }

    #[test]
    fn by_force_a_worker_goes_without_an_api() {
        let desired = cluster(2);
        let mut world = running(&desired);
        world.power_off("minikube");
        let plan = leave(&desired, &world.observe(), "minikube-m02", None, Leave::Delete, true).unwrap();
        assert!(!plan.steps().any(|s| matches!(s, Step::Drain(_) | Step::DeleteNode(_))), "{plan}");
        assert!(plan.steps().any(|s| matches!(s, Step::RemoveMachine(_))), "{plan}");
    }

    proptest! {
        /// Nodes go and go down in any order: the world asserts a majority at every step. A removal that is cut short
        /// can be done again.
        #[test]
        fn no_majority_is_lost(
            count in 1usize..6,
            moves in prop::collection::vec((0usize..6, 0usize..8, any::<bool>(), any::<bool>()), 0..12),
        ) {
            let mut desired = planes(count, count);
            let mut world = running(&desired);
            for (which, limit, delete, down) in moves {
                let Some(node) = desired.nodes.get(which).cloned() else { continue };
                let machine = desired.machine(&node);
                let members = world.members();
                let alive = members.iter().filter(|m| m.voter && m.healthy && m.machine != machine).count();
                let seen = world.observe();
                if down {
                    let exists = seen.nodes.contains_key(&machine);
                    if exists && alive > members.len() / 2 {
                        world.power_off(&machine);
                    }
                    continue;
                }
                let how = if delete { Leave::Delete } else { Leave::Stop };
                let Ok(plan) = leave(&desired, &seen, &machine, Some(&members), how, false) else { continue };
                world.run(&plan, limit);
                if limit >= plan.steps().count() && delete {
                    desired.nodes.retain(|n| n.name != node.name);
                }
            }
            prop_assert!(world.members().iter().filter(|m| m.voter).count() >= 1);
        }
    }
}
