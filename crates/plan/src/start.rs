//! From whatever is there to the cluster that is wanted.

use model::Cluster;

use crate::observed::{Api, Image, MachineState, Observed, ObservedNode};
use crate::step::{Plan, Step, phase};

pub fn start(desired: &Cluster, observed: &Observed) -> Plan {
    let absent = ObservedNode::absent();
    let nodes: Vec<(String, bool, &ObservedNode)> = desired
        .nodes
        .iter()
        .map(|n| {
            let machine = desired.machine(n);
            let seen = observed.nodes.get(&machine).unwrap_or(&absent);
            (machine, n.control_plane, seen)
        })
        .collect();
    let each = |step: fn(String) -> Step, want: &dyn Fn(bool, &ObservedNode) -> bool| -> Vec<Step> {
        nodes.iter().filter(|(_, cp, n)| want(*cp, n)).map(|(m, _, _)| step(m.clone())).collect()
    };
    let any = |want: &dyn Fn(&ObservedNode) -> bool| nodes.iter().any(|(_, _, n)| want(n));

    let create = each(Step::CreateMachine, &|_, n| n.machine == MachineState::Absent);
    let boot = each(Step::BootMachine, &|_, n| n.machine != MachineState::Running || !n.up);
    // Controllers that ran from a disk left leases that nobody renews. They are cleared until the
    // system is seen ready, not just by the start that booted: that one may have been cut short.
    let resumed = !observed.system_ready && any(&|n| n.controllers);

    let ground = [
        (!create.is_empty() || !observed.certificates).then_some(Step::Certificates),
        (!boot.is_empty() || !observed.network).then_some(Step::NetworkUp),
    ];
    let mut configure: Vec<Step> = Vec::new();
    if resumed {
        configure.push(Step::ClearLeases);
    }
    if !observed.configured {
        configure.extend([Step::UploadConfig, Step::Addons]);
    }
    configure.extend(each(Step::ReleaseControllers, &|cp, n| cp && !n.controllers));
    configure.extend(each(Step::AdoptNode, &|_, n| !n.adopted));

    let waits = !desired.wait.components.is_empty();
    if waits {
        configure.extend(each(Step::WaitNode, &|_, n| !n.ready || n.machine != MachineState::Running));
    }
    let settled = configure.is_empty() && boot.is_empty();
    let mut verify = Vec::new();
    if waits && (!settled || !observed.system_ready) {
        verify.push(Step::WaitSystem);
    }
    if !observed.configured {
        verify.push(Step::MarkConfigured);
    }

    Plan::default()
        // The image is what machines are made of, and the network borrows its tools.
        .phase(phase::IMAGE, if observed.image == Image::Absent { vec![Step::BuildImage] } else { vec![] })
        .phase(phase::GROUND, ground.into_iter().flatten().collect())
        .phase(phase::MACHINES, create)
        .phase(phase::BOOT, boot)
        .phase(phase::CONTROL_PLANE, each(Step::WaitApi, &|cp, n| cp && (n.api != Api::Ready || !n.up)))
        .phase(phase::CONFIGURE, configure)
        .phase(phase::VERIFY, verify)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::{World, cluster};
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
             5. Booting the control plane: wait for the API server (minikube)\n \
             6. Configuring the cluster: record kubeadm's configuration; apply kube-proxy, DNS and storage; \
             start the controllers (minikube); label the node and give it its pod range (minikube); \
             wait until the node is Ready (minikube)\n \
             7. Verifying that all is ready: wait for DNS and the system pods; mark the cluster as set up"
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

    proptest! {
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
