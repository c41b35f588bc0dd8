//! A small world for tests of the planner: steps change it, crashes leave it half-way.

use std::collections::{BTreeMap, BTreeSet};

use model::cluster::{Network, Wait, WaitFor};
use model::{Cluster, Cni, DriverKind, Node, VipBy, address, names};

use crate::leave::Member;
use crate::observed::{Api, Image, MachineState, Membership, Observed, ObservedNode, Setup};
use crate::step::{Plan, Step};

pub struct World {
    seen: Observed,
    /// Leases left by controllers of an earlier boot.
    stale_leases: bool,
    applied: BTreeSet<&'static str>,
    /// By machine: whether it votes.
    etcd: BTreeMap<String, bool>,
    /// Machines whose files tell them to drop what they have of etcd's data at their next boot.
    to_reset: BTreeSet<String>,
    /// Machines whose volumes were lost.
    erased: BTreeSet<String>,
}

/// `count` nodes, the first a control plane.
pub fn cluster(count: usize) -> Cluster {
    planes(1, count)
}

/// `count` nodes, the first ones control planes.
pub fn planes(control_planes: usize, count: usize) -> Cluster {
    let control_planes = u32::try_from(control_planes).unwrap();
    let subnet = "192.168.49.0/24".parse().unwrap();
    let node = |number: u32| Node {
        name: names::node(number),
        ip: address::node_ip(subnet, number).unwrap(),
        control_plane: number <= control_planes,
        worker: true,
        kubernetes_version: "v1.37.1".into(),
        config: model::NodeConfig::default(),
    };
    Cluster {
        name: "minikube".into(),
        driver: DriverKind::Native,
        kubernetes_version: "v1.37.1".into(),
        cpus: 2,
        memory_mib: 3072,
        disk_mib: 20000,
        network: Network {
            subnet,
            pod_cidr: "10.244.0.0/16".parse().unwrap(),
            service_cidr: "10.96.0.0/12".parse().unwrap(),
            dns_domain: "cluster.local".into(),
        },
        api_port: 8443,
        nodes: (1..=u32::try_from(count).unwrap()).map(node).collect(),
        api_names: vec![],
        api_ips: vec![],
        cert_expiration_hours: 26280,
        addons: BTreeMap::new(),
        namespace: "default".into(),
        keep_context: false,
        embed_certs: false,
        wait: Wait { components: vec![WaitFor::SystemPods] },
        cni: Cni::BuiltIn,
        vip_by: VipBy::Agent,
        node_defaults: model::NodeConfig::default(),
        extras: model::cluster::Extras::default(),
    }
}

impl World {
    pub fn empty() -> World {
        World {
            seen: Observed {
                image: Image::Absent,
                certificates: false,
                network: false,
                nodes: BTreeMap::new(),
                configured: false,
                manifests: true,
                images: true,
                loaded: false,
                system_ready: false,
            },
            stale_leases: false,
            applied: BTreeSet::new(),
            etcd: BTreeMap::new(),
            to_reset: BTreeSet::new(),
            erased: BTreeSet::new(),
        }
    }

    pub fn observe(&self) -> Observed {
        self.seen.clone()
    }

    /// Runs the plan, but only the first `limit` steps of it.
    pub fn run(&mut self, plan: &Plan, limit: usize) {
        let steps: Vec<Step> = plan.steps().take(limit).cloned().collect();
        let deletes_all = plan.steps().any(|s| *s == Step::ForgetNetwork);
        for step in &steps {
            if let Step::RemoveMachine(m) = step {
                assert!(
                    deletes_all || self.etcd.get(m) != Some(&true),
                    "the disk of a voter is removed: {m}"
                );
                self.erased.insert(m.clone());
            }
            self.step(step);
        }
    }

    pub fn power_loss(&mut self) {
        self.seen.network = false;
        self.seen.system_ready = false;
        for node in self.seen.nodes.values_mut() {
            self.stale_leases |= node.controllers;
            node.machine = MachineState::Stopped;
            (node.up, node.ready, node.api) = (false, false, Api::Down);
        }
    }

    fn node(&mut self, machine: &str) -> &mut ObservedNode {
        self.seen.nodes.get_mut(machine).expect("a step about a machine that is not there")
    }

    pub fn api_up(&self) -> bool {
        self.seen.nodes.values().any(|n| n.api == Api::Ready)
    }

    /// The list of nodes is another one now.
    pub fn change_peers(&mut self) {
        self.seen.nodes.values_mut().for_each(|n| n.peers = false);
    }

    pub fn change_setup(&mut self, machine: &str, setup: Setup) {
        self.node(machine).setup = setup;
    }

    /// Of etcd: the machine is still there and still believes to be a member.
    pub fn lose_data(&mut self, machine: &str) {
        self.node(machine).membership = Membership::Lost;
    }

    /// A command that removes this member wrote its note and died.
    pub fn note_unsure(&mut self, machine: &str) {
        self.node(machine).membership = Membership::Unsure;
    }

    /// Whether a machine was removed with all it had.
    pub fn is_erased(&self, machine: &str) -> bool {
        self.erased.contains(machine)
    }

    pub fn lose_node_object(&mut self, machine: &str) {
        let node = self.node(machine);
        (node.registered, node.adopted, node.ready) = (false, false, false);
    }

    pub fn change_api_certificate(&mut self) {
        self.seen.certificates = false;
        self.seen.nodes.values_mut().for_each(|n| n.api_certificate = false);
    }

    /// Into all nodes that run.
    pub fn load_image(&mut self) {
        self.seen.loaded = true;
        self.seen.nodes.values_mut().for_each(|n| n.images = n.up);
    }

    pub fn forget_images(&mut self, machine: &str) {
        self.node(machine).images = false;
    }

    /// In the cluster file.
    pub fn name_images(&mut self) {
        self.seen.images = false;
    }

    pub fn power_off(&mut self, machine: &str) {
        self.step(&Step::PowerOff(machine.to_owned()));
    }

    pub fn voters(&self) -> usize {
        self.etcd.values().filter(|votes| **votes).count()
    }

    pub fn members(&self) -> Vec<Member> {
        let healthy = |m: &String| {
            self.seen
                .nodes
                .get(m)
                .is_some_and(|n| n.machine == MachineState::Running && n.membership.may_vote())
        };
        self.etcd
            .iter()
            .map(|(m, votes)| Member { machine: m.clone(), voter: *votes, healthy: healthy(m) })
            .collect()
    }

    fn assert_quorum(&self) {
        let voters: Vec<Member> = self.members().into_iter().filter(|m| m.voter).collect();
        let healthy = voters.iter().filter(|m| m.healthy).count();
        assert!(healthy > voters.len() / 2, "no quorum: {voters:?}");
    }

    /// As the command does it: what etcd has as a member with its data stays; all else is forgotten and added again.
    fn create_member(&mut self, m: &str) {
        assert!(self.seen.certificates && self.seen.image == Image::Present);
        let whole = self.seen.nodes.get(m).is_some_and(|n| n.membership == Membership::Unsure);
        if whole && self.etcd.contains_key(m) && !self.to_reset.contains(m) {
            self.assert_quorum();
            return;
        }
        self.etcd.remove(m);
        self.assert_quorum();
        assert!(self.etcd.values().all(|votes| *votes), "two learners");
        self.etcd.insert(m.to_owned(), false);
        self.to_reset.insert(m.to_owned());
        let made = ObservedNode {
            machine: MachineState::Stopped,
            membership: Membership::Unsure,
            ..ObservedNode::absent()
        };
        self.seen.nodes.insert(m.to_owned(), made);
    }

    /// Every step insists on what it needs: a plan in the wrong order panics here.
    fn step(&mut self, step: &Step) {
        match step {
            Step::BuildImage => self.seen.image = Image::Present,
            Step::Certificates => self.seen.certificates = true,
            Step::NetworkUp => {
                assert_eq!(self.seen.image, Image::Present);
                self.seen.network = true;
            }
            Step::CreateMachine(m) => {
                assert!(self.seen.certificates && self.seen.image == Image::Present);
                let held = m != "minikube";
                let made = ObservedNode { machine: MachineState::Stopped, held, ..ObservedNode::absent() };
                assert!(self.seen.nodes.insert(m.clone(), made).is_none(), "created twice");
            }
            Step::ReleaseApi(m) => {
                assert!(self.node(m).up);
                self.node(m).held = false;
            }
            Step::Configure(m) => {
                assert!(self.seen.certificates);
                let node = self.node(m);
                assert_eq!(node.machine, MachineState::Stopped);
                (node.setup, node.controllers, node.api_certificate) = (Setup::AsWanted, false, true);
            }
            Step::Resize(m) => {
                let node = self.node(m);
                assert!(node.up && node.setup == Setup::OtherSize);
                node.setup = Setup::AsWanted;
            }
            Step::BootMachine(m) => {
                assert!(self.seen.network);
                let reset = self.to_reset.remove(m);
                let node = self.node(m);
                assert!(reset || node.membership.may_vote(), "{m} has no member of etcd to boot");
                if reset {
                    (node.held, node.controllers) = (false, false);
                }
                (node.machine, node.up, node.api) = (MachineState::Running, true, Api::Serving);
            }
            Step::CreateMember(m) => self.create_member(m),
            Step::PromoteMember(m) => {
                assert!(self.node(m).up);
                self.assert_quorum();
                assert!(self.etcd.insert(m.clone(), true).is_some(), "no member to promote");
                self.node(m).membership = Membership::Joined;
                self.assert_quorum();
            }
            Step::RemoveMember(m) => {
                self.assert_quorum();
                self.etcd.remove(m);
                if let Some(node) = self.seen.nodes.get_mut(m) {
                    node.membership = Membership::Left;
                }
                self.assert_quorum();
            }
            Step::Peers(m) => self.node(m).peers = true,
            Step::Certify(m) => {
                assert!(self.seen.certificates);
                self.node(m).api_certificate = true;
            }
            Step::Register(m) => {
                assert!(self.api_up() && self.node(m).up);
                self.node(m).registered = true;
            }
            Step::NoteLeft(m) => {
                assert!(!self.etcd.contains_key(m), "its copy may still be needed");
                let node = self.node(m);
                assert_ne!(node.machine, MachineState::Running);
                node.membership = Membership::Left;
            }
            Step::RecoverEtcd(m) => {
                assert!(self.seen.network && self.node(m).membership.may_vote());
                self.etcd = BTreeMap::from([(m.clone(), true)]);
            }
            Step::Drain(m) => assert!(self.api_up() && self.seen.nodes[m].up),
            Step::DeleteNode(_) => assert!(self.api_up()),
            Step::WaitApi(m) => {
                if !self.etcd.contains_key(m) {
                    assert!(!self.seen.configured, "a second etcd");
                    self.etcd.insert(m.clone(), true);
                }
                assert!(self.node(m).up && self.node(m).membership.may_vote() && !self.node(m).held);
                self.node(m).api = Api::Ready;
            }
            Step::PutImages(m) => {
                assert!(self.node(m).up);
                self.node(m).images = true;
            }
            Step::LoadImages => {
                assert!(self.seen.nodes.values().any(|n| n.up));
                self.seen.images = true;
                self.load_image();
            }
            Step::ReleaseControllers(m) => {
                assert!(self.api_up());
                self.node(m).controllers = true;
            }
            Step::ClearLeases => {
                assert!(self.api_up());
                self.stale_leases = false;
            }
            Step::UploadConfig | Step::Addons => {
                assert!(self.api_up());
                self.applied.insert(step.title());
            }
            Step::PodNetwork => assert!(self.api_up()),
            Step::Manifests => {
                assert!(self.api_up());
                self.seen.manifests = true;
            }
            Step::MarkConfigured => {
                assert_eq!(self.applied.len(), 2);
                self.seen.configured = true;
            }
            Step::AdoptNode(m) => {
                assert!(self.api_up() && self.seen.nodes[m].up);
                self.node(m).adopted = true;
            }
            Step::WaitNode(m) => {
                assert!(self.api_up() && self.seen.nodes[m].up);
                self.node(m).ready = true;
            }
            Step::WaitSystem => {
                assert!(self.applied.len() == 2 && !self.stale_leases);
                assert!(self.seen.nodes.values().any(|n| n.controllers));
                self.seen.system_ready = true;
            }
            Step::PowerOff(m) => {
                let node = self.node(m);
                (node.machine, node.up, node.ready, node.api) =
                    (MachineState::Stopped, false, false, Api::Down);
            }
            Step::NetworkDown | Step::ForgetNetwork => {
                assert!(self.seen.nodes.values().all(|n| n.machine != MachineState::Running));
                self.seen.network = false;
            }
            Step::RemoveMachine(m) => {
                self.seen.nodes.remove(m);
            }
        }
    }
}
