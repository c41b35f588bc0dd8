//! From whatever is there to the cluster that is wanted.

use model::{Cluster, Cni};

use crate::observed::{Api, Image, MachineState, Observed, ObservedNode};
use crate::step::{Plan, Step, phase};

/// The whole cluster.
pub fn start(desired: &Cluster, observed: &Observed) -> Plan {
    bring_up(desired, observed, None)
}

/// Some nodes of a cluster that runs; what the others do is not looked at.
pub fn add(desired: &Cluster, observed: &Observed, machines: &[String]) -> Plan {
    bring_up(desired, observed, Some(machines))
}

struct Seen<'a> {
    machine: String,
    control_plane: bool,
    /// Comes into an etcd that others have formed.
    joins: bool,
    node: &'a ObservedNode,
}

fn bring_up(desired: &Cluster, observed: &Observed, only: Option<&[String]>) -> Plan {
    let absent = ObservedNode::absent();
    let look = |machine: &str| observed.nodes.get(machine).unwrap_or(&absent);
    // Without anybody to join, the control planes begin anew, all at once.
    let formed = observed.configured
        && desired
            .control_planes()
            .map(|n| look(&desired.machine(n)))
            .any(|n| n.machine != MachineState::Absent && !n.outside);
    let configured = observed.configured && formed;
    let nodes: Vec<Seen<'_>> = desired
        .nodes
        .iter()
        .map(|n| (desired.machine(n), n.control_plane))
        .filter(|(machine, _)| only.is_none_or(|some| some.contains(machine)))
        .map(|(machine, control_plane)| {
            let node = look(&machine);
            // What is outside is removed first, and then absent.
            let node = if node.outside { &absent } else { node };
            let joins = control_plane && formed && node.machine == MachineState::Absent;
            Seen { machine, control_plane, joins, node }
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

    let reset = each(Step::RemoveMachine, &|n| look(&n.machine).outside);
    let peers = step_for(Step::Peers, &|n| n.machine != MachineState::Absent && !n.outside && !n.peers);
    let creates = any(&|n| n.node.machine == MachineState::Absent);
    let create = each(Step::CreateMachine, &|n| !n.joins && n.node.machine == MachineState::Absent);
    let boot =
        each(Step::BootMachine, &|n| !n.joins && (n.node.machine != MachineState::Running || !n.node.up));
    let boots = !boot.is_empty() || any(&|n| n.joins);
    // Controllers that ran from a disk left leases that nobody renews. They are cleared until the
    // system is seen ready, not just by the start that booted: that one may have been cut short.
    let resumed = only.is_none() && !observed.system_ready && any(&|n| n.node.controllers);

    let ground = [
        (creates || !observed.certificates).then_some(Step::Certificates),
        (boots || !observed.network).then_some(Step::NetworkUp),
    ];
    let answers =
        each(Step::WaitApi, &|n| n.control_plane && !n.joins && (n.node.api != Api::Ready || !n.node.up));
    // Who joins needs somebody to join. All else begins with the first API server that answers, while
    // the others are still coming up.
    let (first, mut configure) =
        if any(&|n| n.joins) { (answers, Vec::new()) } else { (Vec::new(), answers) };
    if resumed {
        configure.push(Step::ClearLeases);
    }
    if !configured && only.is_none() {
        configure.extend([Step::UploadConfig, Step::Addons]);
        if matches!(desired.cni, Cni::Manifest(_)) {
            configure.push(Step::PodNetwork);
        }
    }
    configure.extend(each(Step::ReleaseControllers, &|n| n.control_plane && !n.node.controllers));
    configure.extend(each(Step::AdoptNode, &|n| !n.node.adopted));

    let waits = only.is_some() || !desired.wait.components.is_empty();
    // Without a pod network no node is ever Ready.
    if waits && desired.cni != Cni::None {
        configure.extend(each(Step::WaitNode, &|n| {
            !n.node.ready || n.node.machine != MachineState::Running || !n.node.up
        }));
    }
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
        .phase(phase::IMAGE, if observed.image == Image::Absent { vec![Step::BuildImage] } else { vec![] })
        .phase(phase::GROUND, ground.into_iter().flatten().collect())
        // Before anybody new is there: who is alone with the virtual address learns to share it.
        .phase(phase::PEERS, peers)
        .phase(phase::RESET, reset)
        .phase(phase::MACHINES, create)
        .phase(phase::BOOT, boot)
        .phase(phase::CONTROL_PLANE, first);
    // One learner at a time: etcd takes no second one, and no vote is open while another begins.
    for joins in nodes.iter().filter(|n| n.joins) {
        let machine = || joins.machine.clone();
        plan = plan
            .phase(phase::JOIN, vec![Step::CreateMember(machine())])
            .phase(phase::BOOT, vec![Step::BootMachine(machine())])
            .phase(phase::JOIN, vec![Step::PromoteMember(machine())])
            .phase(phase::CONTROL_PLANE, vec![Step::WaitApi(machine())]);
    }
    plan.phase(phase::CONFIGURE, configure).phase(phase::VERIFY, verify)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::{World, cluster, planes};
    use proptest::prelude::*;

    #[test]
    fn from_nothing() {
        let plan = start(&cluster(1), &World::empty().observe());
        let text = plan.to_string();
        assert_eq!(
            text,
            " 1. Building the node image: build the node image\n \
             2. Preparing certificates and network: make certificates; make the network\n \
             3. Creating machines: create the machine (minikube)\n \
             4. Booting machines: boot (minikube)\n \
             5. Configuring the cluster: wait for the API server (minikube); record kubeadm's configuration; apply kube-proxy, DNS and storage; \
             start the controllers (minikube); label the node and give it its pod range (minikube); \
             wait until the node is Ready (minikube)\n \
             6. Verifying that all is ready: wait for DNS and the system pods; mark the cluster as set up"
        );
    }

    #[test]
    fn a_running_cluster_needs_nothing() {
        let cluster = cluster(3);
        let mut world = World::empty();
        world.run(&start(&cluster, &world.observe()), usize::MAX);
        assert_eq!(start(&cluster, &world.observe()), Plan::default());
        assert_eq!(start(&cluster, &world.observe()).to_string(), "nothing to do");
    }

    #[test]
    fn who_does_not_wait_is_not_kept_waiting() {
        let mut cluster = cluster(1);
        cluster.wait.components.clear();
        let plan = start(&cluster, &World::empty().observe());
        assert!(!plan.steps().any(|s| matches!(s, Step::WaitNode(_) | Step::WaitSystem)));
    }

    #[test]
    fn nobody_waits_for_a_pod_network_that_is_not_there() {
        let mut cluster = cluster(2);
        cluster.cni = Cni::None;
        let mut world = World::empty();
        let plan = start(&cluster, &world.observe());
        assert!(!plan.steps().any(|s| matches!(s, Step::WaitNode(_) | Step::PodNetwork)));
        assert!(plan.steps().any(|s| *s == Step::WaitSystem));
        world.run(&plan, usize::MAX);
        assert!(start(&cluster, &world.observe()).is_empty());
        let mut grown = planes(1, 3);
        grown.cni = Cni::None;
        let plan = add(&grown, &world.observe(), &["minikube-m03".into()]);
        assert!(!plan.steps().any(|s| matches!(s, Step::WaitNode(_))));
    }

    #[test]
    fn a_pod_network_of_the_users_is_applied_once_and_waited_for() {
        let mut cluster = cluster(1);
        cluster.cni = Cni::Manifest("/tmp/cni.yaml".into());
        let mut world = World::empty();
        let plan = start(&cluster, &world.observe());
        assert!(plan.steps().any(|s| *s == Step::PodNetwork));
        assert!(plan.steps().any(|s| matches!(s, Step::WaitNode(_))));
        world.run(&plan, usize::MAX);
        world.power_loss();
        assert!(!start(&cluster, &world.observe()).steps().any(|s| *s == Step::PodNetwork));
    }

    #[test]
    fn a_stopped_cluster_is_only_booted() {
        let cluster = cluster(1);
        let mut world = World::empty();
        world.run(&start(&cluster, &world.observe()), usize::MAX);
        world.power_loss();
        let steps: Vec<Step> = start(&cluster, &world.observe()).steps().cloned().collect();
        assert!(!steps.iter().any(|s| matches!(
            s,
            Step::CreateMachine(_)
                | Step::Addons
                | Step::UploadConfig
                | Step::Certificates
                | Step::AdoptNode(_)
        )));
        assert!(steps.contains(&Step::ClearLeases));
    }

    #[test]
    fn a_worker_is_added_without_a_look_at_the_others() {
        let mut world = World::empty();
        world.run(&start(&cluster(2), &world.observe()), usize::MAX);
        world.power_off("minikube-m02");
        let grown = cluster(3);
        world.change_peers();
        let plan = add(&grown, &world.observe(), &["minikube-m03".into()]);
        assert_eq!(
            plan.to_string(),
            " 1. Preparing certificates and network: make certificates; make the network\n \
             2. Telling the nodes of each other: write the list of nodes (minikube); \
             write the list of nodes (minikube-m02)\n \
             3. Creating machines: create the machine (minikube-m03)\n \
             4. Booting machines: boot (minikube-m03)\n \
             5. Configuring the cluster: label the node and give it its pod range (minikube-m03); \
             wait until the node is Ready (minikube-m03)"
        );
    }

    #[test]
    fn control_planes_join_one_after_the_other() {
        let mut world = World::empty();
        world.run(&start(&planes(1, 1), &world.observe()), usize::MAX);
        let grown = planes(3, 3);
        world.change_peers();
        let plan = add(&grown, &world.observe(), &["minikube-m02".into(), "minikube-m03".into()]);
        let text = plan.to_string();
        assert!(
            text.contains(
                "Joining the control plane: create the machine as a learner of etcd (minikube-m02)\n"
            ),
            "{text}"
        );
        world.run(&plan, usize::MAX);
        assert_eq!(world.voters(), 3);
        assert!(start(&grown, &world.observe()).is_empty(), "{}", start(&grown, &world.observe()));
    }

    #[test]
    fn who_left_is_made_anew() {
        let three = planes(3, 3);
        let mut world = World::empty();
        world.run(&start(&three, &world.observe()), usize::MAX);
        let members = world.members();
        let out =
            crate::leave(&three, &world.observe(), "minikube-m02", Some(&members), crate::Leave::Stop, false);
        world.run(&out.unwrap(), usize::MAX);
        assert_eq!(world.voters(), 2);
        world.power_loss();
        let plan = start(&three, &world.observe());
        assert!(plan.steps().any(|s| *s == Step::RemoveMachine("minikube-m02".into())));
        world.run(&plan, usize::MAX);
        assert_eq!(world.voters(), 3);
    }

    proptest! {
        /// One control plane grows to many, with crashes on the way.
        #[test]
        fn growth_converges(to in 2usize..6, crashes in prop::collection::vec((0usize..40, any::<bool>()), 0..6)) {
            let mut world = World::empty();
            world.run(&start(&planes(1, 1), &world.observe()), usize::MAX);
            let grown = planes(to, to);
            world.change_peers();
            let new: Vec<String> = grown.nodes[1..].iter().map(|n| grown.machine(n)).collect();
            for (after, power) in crashes {
                let plan = if world.api_up() { add(&grown, &world.observe(), &new) } else { start(&grown, &world.observe()) };
                world.run(&plan, after);
                if power {
                    world.power_loss();
                }
            }
            world.run(&start(&grown, &world.observe()), usize::MAX);
            prop_assert!(start(&grown, &world.observe()).is_empty());
            prop_assert_eq!(world.voters(), to);
        }

        /// Whatever a crash leaves, the next start finishes the work.
        #[test]
        fn any_crash_converges(nodes in 1usize..5, crashes in prop::collection::vec((0usize..30, any::<bool>()), 0..6)) {
            let cluster = cluster(nodes);
            let mut world = World::empty();
            for (after, power) in crashes {
                world.run(&start(&cluster, &world.observe()), after);
                if power {
                    world.power_loss();
                }
            }
            world.run(&start(&cluster, &world.observe()), usize::MAX);
            prop_assert!(start(&cluster, &world.observe()).is_empty());
        }
    }
}
