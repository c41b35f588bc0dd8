//! From whatever is there to the cluster that is wanted.

use model::{Cluster, Cni};

use crate::observed::{Api, Image, MachineState, Membership, Observed, ObservedNode, Setup};
use crate::step::{Plan, Step, phase};

/// The whole cluster.
pub fn start(desired: &Cluster, observed: &Observed) -> Plan {
    bring_up(desired, observed, None)
}

/// Some nodes of a cluster that runs; what the others do is not looked at.
pub fn add(desired: &Cluster, observed: &Observed, machines: &[String]) -> Plan {
    bring_up(desired, observed, Some(machines))
}

/// Machines without booting them. Workers only: a control plane becomes a member of etcd first.
pub fn create(desired: &Cluster, observed: &Observed, machines: &[String]) -> Plan {
    let absent = machines.iter().filter(|m| !observed.nodes.contains_key(*m));
    let create: Vec<Step> = absent.cloned().map(Step::CreateMachine).collect();
    debug_assert!(
        desired.nodes.iter().filter(|n| n.control_plane).all(|n| !machines.contains(&desired.machine(n)))
    );
    let certificates = if create.is_empty() { vec![] } else { vec![Step::Certificates] };
    Plan::default()
        .phase(phase::IMAGE, image(observed))
        .phase(phase::GROUND, certificates)
        .phase(phase::MACHINES, create)
}

fn image(observed: &Observed) -> Vec<Step> {
    if observed.image == Image::Absent { vec![Step::BuildImage] } else { vec![] }
}

struct Seen<'a> {
    machine: String,
    control_plane: bool,
    /// Is made to restart, because its files are to be others.
    restarts: bool,
    /// With all others that restart, instead of after them.
    at_once: bool,
    /// Comes into an etcd that others have formed.
    joins: bool,
    /// Is booted as it is before it joins: etcd may need its vote to answer at all.
    as_it_is: bool,
    node: &'a ObservedNode,
}

fn bring_up(desired: &Cluster, observed: &Observed, only: Option<&[String]>) -> Plan {
    let absent = ObservedNode::absent();
    let look = |machine: &str| observed.nodes.get(machine).unwrap_or(&absent);
    let exists = |n: &ObservedNode| n.machine != MachineState::Absent;
    let votes = |n: &ObservedNode| exists(n) && n.membership.may_vote();
    let voters = desired.control_planes().filter(|n| votes(look(&desired.machine(n)))).count();
    // Where there is none to join, all control planes begin at once. The caller makes sure that no data is lost by it.
    let formed = observed.configured && voters > 0;
    let configured = observed.configured && formed;
    // Workers all at once; control planes one after the other, so that the others carry on. Where none
    // carries on there is nothing to spare: with certificates that have ended, one alone never comes up.
    let carries_on = desired.control_planes().any(|n| look(&desired.machine(n)).api == Api::Ready);
    let nodes: Vec<Seen<'_>> = desired
        .nodes
        .iter()
        .map(|n| (desired.machine(n), n.control_plane))
        .filter(|(machine, _)| only.is_none_or(|some| some.contains(machine)))
        .map(|(machine, control_plane)| {
            let seen = look(&machine);
            let joins = control_plane
                && formed
                && match seen.membership {
                    Membership::Joined => !exists(seen),
                    // Where it is the only one left, there is no other to ask.
                    Membership::Unsure => voters > 1,
                    Membership::Left | Membership::Lost => true,
                };
            let down = seen.machine != MachineState::Running || !seen.up;
            let as_it_is = joins && seen.membership == Membership::Unsure && down && !carries_on;
            // One that joins is made as if it were not there.
            let node = if joins { &absent } else { seen };
            let restarts = node.machine == MachineState::Running && node.setup == Setup::Other;
            let at_once = restarts && (!control_plane || !carries_on);
            Seen { machine, control_plane, restarts, at_once, joins, as_it_is, node }
        })
        .collect();
    let each = |step: fn(String) -> Step, want: &dyn Fn(&Seen<'_>) -> bool| -> Vec<Step> {
        nodes.iter().filter(|n| want(n)).map(|n| step(n.machine.clone())).collect()
    };
    let any = |want: &dyn Fn(&Seen<'_>) -> bool| nodes.iter().any(want);
    let machines = || desired.nodes.iter().map(|n| desired.machine(n));
    let step_for = |step: fn(String) -> Step, want: &dyn Fn(&ObservedNode) -> bool| -> Vec<Step> {
        machines().filter(|m| want(look(m))).map(step).collect()
    };

    let peers = step_for(Step::Peers, &|n| votes(n) && !n.peers);
    let planes: Vec<String> = desired.control_planes().map(|n| desired.machine(n)).collect();
    let restart = |m: &str| nodes.iter().any(|n| n.machine == m && n.restarts);
    let certify = |m: &&String| {
        let node = look(m);
        votes(node) && !node.api_certificate && !restart(m)
    };
    let certify: Vec<Step> = planes.iter().filter(certify).cloned().map(Step::Certify).collect();
    let creates = any(&|n| n.node.machine == MachineState::Absent);
    let create = each(Step::CreateMachine, &|n| !n.joins && n.node.machine == MachineState::Absent);
    let off = each(Step::PowerOff, &|n| n.at_once);
    let configure_first = each(Step::Configure, &|n| match n.node.machine {
        MachineState::Absent => false,
        MachineState::Stopped => n.node.setup != Setup::AsWanted,
        MachineState::Running => n.at_once,
    });
    let boot = each(Step::BootMachine, &|n| {
        let down = n.node.machine != MachineState::Running || !n.node.up;
        n.as_it_is || !n.joins && if n.restarts { n.at_once } else { down }
    });
    let resize =
        each(Step::Resize, &|n| n.node.machine == MachineState::Running && n.node.setup == Setup::OtherSize);
    let changes = !configure_first.is_empty() || any(&|n| n.restarts);
    let boots = !boot.is_empty() || any(&|n| n.joins || n.restarts);
    // Controllers that ran from a disk left leases that nobody renews. They are cleared until the
    // system is seen ready, not just by the start that booted: that one may have been cut short.
    let ran = observed.configured || any(&|n| n.node.controllers);
    let resumed = only.is_none() && !observed.system_ready && ran || any(&|n| n.restarts && n.control_plane);

    let ground = [
        (creates || changes || !certify.is_empty() || !observed.certificates).then_some(Step::Certificates),
        (boots || !observed.network).then_some(Step::NetworkUp),
    ];
    let primary = desired.primary().map(|n| desired.machine(n));
    // The first one has the machine to itself, so that there is something to speak to soon.
    let mut answers = each(Step::ReleaseApi, &|n| {
        let new = n.node.machine == MachineState::Absent && Some(&n.machine) != primary.as_ref();
        n.control_plane && !n.joins && (n.node.held || new)
    });
    answers.extend(each(Step::WaitApi, &|n| {
        n.control_plane && !n.joins && (n.at_once || !n.restarts) && (n.node.api != Api::Ready || !n.node.up)
    }));
    // Who joins needs somebody to join. All else begins with the first API server that answers, while
    // the others are still coming up.
    let (first, mut configure) = if any(&|n| n.joins || n.restarts && !n.at_once) {
        (answers, Vec::new())
    } else {
        (Vec::new(), answers)
    };
    if resumed {
        configure.push(Step::ClearLeases);
    }
    if !configured && only.is_none() {
        configure.extend([Step::UploadConfig, Step::Addons]);
        if matches!(desired.cni, Cni::Manifest(_)) {
            configure.push(Step::PodNetwork);
        }
    }
    if !observed.manifests && only.is_none() {
        configure.push(Step::Manifests);
    }
    // What is configured anew holds its controllers back again.
    configure.extend(each(Step::ReleaseControllers, &|n| {
        let anew = n.restarts || n.node.machine == MachineState::Stopped && n.node.setup != Setup::AsWanted;
        n.control_plane && (!n.node.controllers || anew)
    }));
    // One that boots registers by itself.
    configure.extend(each(Step::Register, &|n| configured && n.node.up && !n.restarts && !n.node.registered));
    configure.extend(each(Step::AdoptNode, &|n| !n.node.adopted));

    let waits = only.is_some() || !desired.wait.components.is_empty();
    // Without a pod network no node is ever Ready.
    if waits && desired.cni != Cni::None {
        configure.extend(each(Step::WaitNode, &|n| {
            !n.node.ready || n.node.machine != MachineState::Running || !n.node.up || n.restarts
        }));
    }
    // Before its pods ask for them.
    let put = each(Step::PutImages, &|n| {
        let comes = n.restarts || n.node.machine != MachineState::Running || !n.node.up;
        observed.loaded && (comes || !n.node.images)
    });
    let load = if observed.images || only.is_some() { vec![] } else { vec![Step::LoadImages] };
    let settled = configure.is_empty() && !boots;
    let mut verify = Vec::new();
    if waits && only.is_none() && (!settled || !observed.system_ready) {
        verify.push(Step::WaitSystem);
    }
    if !configured && only.is_none() {
        verify.push(Step::MarkConfigured);
    }

    let mut plan = Plan::default()
        // The image is what machines are made of, and the network borrows its tools.
        .phase(phase::IMAGE, image(observed))
        .phase(phase::GROUND, ground.into_iter().flatten().collect())
        // Before a new control plane is there: one that has the virtual address to itself learns to share it.
        .phase(phase::PEERS, peers.into_iter().chain(certify).collect())
        .phase(phase::POWER_OFF, off)
        .phase(phase::MACHINES, create)
        .phase(phase::CHANGE, configure_first)
        .phase(phase::BOOT, boot)
        .phase(phase::CHANGE, resize)
        .phase(phase::CONTROL_PLANE, first);
    for restarts in nodes.iter().filter(|n| n.restarts && !n.at_once) {
        let machine = || restarts.machine.clone();
        plan = plan
            .phase(phase::POWER_OFF, vec![Step::PowerOff(machine())])
            .phase(phase::CHANGE, vec![Step::Configure(machine())])
            .phase(phase::BOOT, vec![Step::BootMachine(machine())])
            .phase(phase::CONTROL_PLANE, vec![Step::WaitApi(machine())]);
    }
    // One learner at a time: etcd takes no second one, and no vote is open while another begins.
    for joins in nodes.iter().filter(|n| n.joins) {
        let machine = || joins.machine.clone();
        plan = plan
            .phase(phase::JOIN, vec![Step::CreateMember(machine())])
            .phase(phase::BOOT, vec![Step::BootMachine(machine())])
            .phase(phase::JOIN, vec![Step::PromoteMember(machine())])
            .phase(phase::CONTROL_PLANE, vec![Step::WaitApi(machine())]);
    }
    plan.phase(phase::IMAGES, put)
        .phase(phase::IMAGES, load)
        .phase(phase::CONFIGURE, configure)
        .phase(phase::VERIFY, verify)
}

#[cfg(test)]
#[path = "start_tests.rs"]
mod tests;
