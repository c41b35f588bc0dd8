use super::*;
use crate::world::{World, cluster, planes};
use proptest::prelude::*;

#[test]
fn from_nothing() {
    let plan = start(&cluster(1), &World::empty().observe());
    let text = plan.to_string();
    assert_eq!(
        text,
        " 1. Preparing the node image: prepare the node image\n \
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

fn running(cluster: &Cluster) -> World {
    let mut world = World::empty();
    world.run(&start(cluster, &world.observe()), usize::MAX);
    world
}

#[test]
fn a_deleted_node_registers_anew() {
    let cluster = cluster(2);
    let mut world = running(&cluster);
    world.lose_node_object("minikube-m02");
    let plan = start(&cluster, &world.observe());
    assert!(plan.steps().any(|s| *s == Step::Register("minikube-m02".into())), "{plan}");
    assert!(!plan.steps().any(|s| matches!(s, Step::BootMachine(_))), "{plan}");
    world.run(&plan, usize::MAX);
    assert!(start(&cluster, &world.observe()).is_empty());
}

#[test]
fn a_member_without_data_joins_again_and_keeps_its_disk() {
    let cluster = planes(3, 3);
    let mut world = running(&cluster);
    world.lose_data("minikube-m02");
    world.run(&start(&cluster, &world.observe()), usize::MAX);
    assert!(!world.is_erased("minikube-m02"));
    assert_eq!(world.voters(), 3);
    assert!(start(&cluster, &world.observe()).is_empty());
}

#[test]
fn another_api_certificate_needs_no_restart() {
    let cluster = planes(3, 4);
    let mut world = running(&cluster);
    world.change_api_certificate();
    let plan = start(&cluster, &world.observe());
    assert_eq!(plan.steps().filter(|s| matches!(s, Step::Certify(_))).count(), 3, "{plan}");
    assert!(!plan.steps().any(|s| matches!(s, Step::PowerOff(_))), "{plan}");
}

/// Of two members one was noted as leaving, and the command died before etcd was told (finding 3).
#[test]
fn a_note_does_not_cost_a_voter_its_disk() {
    for down in [false, true] {
        let cluster = planes(2, 2);
        let mut world = running(&cluster);
        world.note_unsure("minikube-m02");
        if down {
            world.power_loss();
        }
        world.run(&start(&cluster, &world.observe()), usize::MAX);
        assert_eq!(world.voters(), 2);
        assert!(!world.is_erased("minikube-m02"));
        assert!(start(&cluster, &world.observe()).is_empty(), "{}", start(&cluster, &world.observe()));
    }
}

/// As when all certificates have ended: none answers, so that none has to be spared.
#[test]
fn where_no_api_answers_all_restart_at_once() {
    let cluster = planes(3, 3);
    let mut world = running(&cluster);
    for node in &cluster.nodes {
        world.change_setup(&cluster.machine(node), Setup::Other);
    }
    let one_by_one = start(&cluster, &world.observe());
    let offs = |plan: &Plan| plan.phases.iter().filter(|p| p.name == phase::POWER_OFF).count();
    assert_eq!(offs(&one_by_one), 3, "{one_by_one}");
    let mut seen = world.observe();
    seen.nodes.values_mut().for_each(|n| n.api = Api::Down);
    let together = start(&cluster, &seen);
    assert_eq!(offs(&together), 1, "{together}");
    world.run(&together, usize::MAX);
    assert!(start(&cluster, &world.observe()).is_empty());
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
fn who_comes_later_gets_the_images() {
    let mut world = World::empty();
    world.run(&start(&cluster(2), &world.observe()), usize::MAX);
    world.load_image();
    assert!(start(&cluster(2), &world.observe()).is_empty());
    world.change_peers();
    let plan = add(&cluster(3), &world.observe(), &["minikube-m03".into()]);
    let puts: Vec<&Step> = plan.steps().filter(|s| matches!(s, Step::PutImages(_))).collect();
    assert_eq!(puts, [&Step::PutImages("minikube-m03".into())]);
    world.run(&plan, usize::MAX);
    world.forget_images("minikube-m02");
    let plan = start(&cluster(3), &world.observe());
    assert_eq!(plan.to_string(), " 1. Loading images: put the loaded images there (minikube-m02)");
}

#[test]
fn images_of_the_file_are_loaded_once() {
    let mut world = World::empty();
    world.name_images();
    let plan = start(&cluster(2), &world.observe());
    assert!(plan.steps().any(|s| *s == Step::LoadImages));
    world.run(&plan, usize::MAX);
    assert!(start(&cluster(2), &world.observe()).is_empty());
}

#[test]
fn who_changes_restarts_and_nobody_else() {
    let cluster = planes(3, 5);
    let mut world = World::empty();
    world.run(&start(&cluster, &world.observe()), usize::MAX);
    world.change_setup("minikube-m02", Setup::Other);
    world.change_setup("minikube-m04", Setup::Other);
    world.change_setup("minikube-m05", Setup::OtherSize);
    let plan = start(&cluster, &world.observe());
    let steps: Vec<Step> = plan.steps().cloned().collect();
    let offs: Vec<&Step> = steps.iter().filter(|s| matches!(s, Step::PowerOff(_))).collect();
    assert_eq!(offs, [&Step::PowerOff("minikube-m04".into()), &Step::PowerOff("minikube-m02".into())]);
    assert!(steps.contains(&Step::Resize("minikube-m05".into())));
    assert!(!steps.iter().any(|s| matches!(s, Step::Addons | Step::CreateMachine(_))));
    world.run(&plan, usize::MAX);
    assert!(start(&cluster, &world.observe()).is_empty(), "{}", start(&cluster, &world.observe()));
}

#[test]
fn who_is_down_changes_without_a_stop() {
    let cluster = planes(1, 2);
    let mut world = World::empty();
    world.run(&start(&cluster, &world.observe()), usize::MAX);
    world.power_loss();
    world.change_setup("minikube", Setup::OtherSize);
    let plan = start(&cluster, &world.observe());
    assert!(!plan.steps().any(|s| matches!(s, Step::PowerOff(_) | Step::Resize(_))));
    world.run(&plan, usize::MAX);
    assert!(start(&cluster, &world.observe()).is_empty());
}

#[test]
fn a_machine_alone() {
    let mut world = World::empty();
    world.run(&start(&cluster(1), &world.observe()), usize::MAX);
    let plan = create(&cluster(2), &world.observe(), &["minikube-m02".into()]);
    assert_eq!(
        plan.to_string(),
        " 1. Preparing certificates and network: make certificates\n 2. Creating machines: create the machine (minikube-m02)"
    );
    world.run(&plan, usize::MAX);
    world.change_peers();
    assert!(create(&cluster(2), &world.observe(), &["minikube-m02".into()]).is_empty());
    world.run(&add(&cluster(2), &world.observe(), &["minikube-m02".into()]), usize::MAX);
    assert!(start(&cluster(2), &world.observe()).is_empty());
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
        Step::CreateMachine(_) | Step::Addons | Step::UploadConfig | Step::Certificates | Step::AdoptNode(_)
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
        text.contains("Joining the control plane: create the machine as a learner of etcd (minikube-m02)\n"),
        "{text}"
    );
    world.run(&plan, usize::MAX);
    assert_eq!(world.voters(), 3);
    assert!(start(&grown, &world.observe()).is_empty(), "{}", start(&grown, &world.observe()));
}

#[test]
fn a_member_that_left_joins_again_and_keeps_its_disk() {
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
    world.run(&plan, usize::MAX);
    assert_eq!(world.voters(), 3);
    assert!(!world.is_erased("minikube-m02"));
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

    /// Nodes that change, with crashes on the way; the majority of etcd carries on.
    #[test]
    fn changes_converge(
        changed in prop::collection::btree_set((0usize..5, any::<bool>()), 1..5),
        crashes in prop::collection::vec((0usize..30, any::<bool>()), 0..4),
    ) {
        let cluster = planes(3, 5);
        let mut world = World::empty();
        world.run(&start(&cluster, &world.observe()), usize::MAX);
        for (node, restart) in changed {
            let setup = if restart { Setup::Other } else { Setup::OtherSize };
            world.change_setup(&cluster.machine(&cluster.nodes[node]), setup);
        }
        for (after, power) in crashes {
            world.run(&start(&cluster, &world.observe()), after);
            if power {
                world.power_loss();
            }
        }
        world.run(&start(&cluster, &world.observe()), usize::MAX);
        prop_assert!(start(&cluster, &world.observe()).is_empty(), "{}", start(&cluster, &world.observe()));
        prop_assert_eq!(world.voters(), 3);
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
