//! How each step of a plan is done.

mod control_plane;
mod files;
mod machine;
mod member;
mod ready;

use std::time::Duration;

use anyhow::{Context, Result, bail};
use bootstrap::Identity;
use bootstrap::api;
use futures::future::LocalBoxFuture;
use model::{Cluster, Home, Node};
use plan::Step;
use tokio::time::sleep;

use super::channel::Machines;
use super::shared::Shared;
use super::{containers, images, manifests};
use crate::ctx::Ctx;

/// A node that is asked to power off has this long before it is killed.
pub const GRACE: Duration = Duration::from_secs(10);
/// Between two looks at something that a user waits for.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// Between two looks whether a node gave up while something else is waited for.
const WATCH: Duration = Duration::from_millis(500);

pub struct Runner<'a> {
    pub ctx: &'a Ctx,
    /// `None` when a profile is removed whose configuration is lost.
    pub cluster: Option<&'a Cluster>,
    pub profile: &'a str,
    pub driver: &'a Machines,
    /// What is left of the time the user gives us.
    pub patience: Duration,
    /// A node that is not in `cluster` any more, but still there.
    pub departing: Option<&'a Node>,
    /// Control planes that are not to take part in the election.
    pub leaving: Vec<String>,
    /// Nodes that come are taken in by `kubeadm join`.
    pub by_kubeadm: bool,
    pub shared: Shared,
}

impl<'a> Runner<'a> {
    pub fn new(ctx: &'a Ctx, cluster: &'a Cluster, driver: &'a Machines, patience: Duration) -> Runner<'a> {
        Runner {
            ctx,
            cluster: Some(cluster),
            profile: &cluster.name,
            driver,
            patience,
            departing: None,
            leaving: Vec::new(),
            by_kubeadm: false,
            shared: Shared::default(),
        }
    }

    /// A plan as the engine runs it.
    pub fn phases(&'a self, plan: &plan::Plan) -> Vec<engine::Phase<'a>> {
        let step = |step: &Step| engine::Step {
            id: step.id(),
            name: step.title().to_owned(),
            node: step.node().map(str::to_owned),
            work: self.work(step.clone()),
        };
        plan.phases
            .iter()
            .map(|p| engine::Phase { name: p.name.to_owned(), steps: p.steps.iter().map(step).collect() })
            .collect()
    }

    fn work(&'a self, step: Step) -> LocalBoxFuture<'a, Result<()>> {
        Box::pin(async move {
            match &step {
                Step::BuildImage => images::provide(self.ctx, self.cluster()?, self.driver).await,
                Step::Certificates => self.shared.pki(self.home(), self.cluster()?).map(drop),
                Step::NetworkUp => self.network_up().await,
                Step::CreateMachine(m) => self.create(m).await,
                Step::Configure(m) => self.configure(m).await,
                Step::Resize(m) => self.resize(m).await,
                Step::BootMachine(m) => self.boot(m).await,
                Step::ReleaseApi(m) => self.release_api(m).await,
                Step::WaitApi(m) => self.wait_api(m).await,
                Step::PutImages(m) => {
                    containers::complete(self.home(), self.cluster()?, self.driver, m).await
                }
                Step::LoadImages => containers::load_named(self.ctx, self.cluster()?).await,
                Step::UploadConfig => self.upload_config().await,
                Step::Addons => self.addons().await,
                Step::PodNetwork => self.pod_network().await,
                Step::Manifests => {
                    manifests::apply(self.home(), self.profile, &self.client()?, self.patience).await
                }
                Step::MarkConfigured => self.mark_configured().await,
                Step::ReleaseControllers(m) => self.release_controllers(m).await,
                Step::ClearLeases => self.clear_leases().await,
                Step::AdoptNode(m) => self.adopt(m).await,
                Step::Register(m) => self.register(m).await,
                Step::WaitNode(m) => self.wait_node(m).await,
                Step::WaitSystem => self.wait_system().await,
                Step::Peers(m) => self.tell_peers(m).await,
                Step::Certify(m) => self.certify(m).await,
                Step::NoteLeft(m) => self.note_replaced(m),
                Step::RecoverEtcd(m) => self.recover_etcd(m).await,
                Step::CreateMember(m) => self.create_member(m).await,
                Step::PromoteMember(m) => self.promote_member(m).await,
                Step::Drain(m) => self.drain(m).await,
                Step::RemoveMember(m) => self.remove_member(m).await,
                Step::DeleteNode(m) => Ok(api::delete_node(&self.client()?, m, self.patience).await?),
                Step::PowerOff(m) => self.driver.power_off(m, GRACE).await,
                Step::NetworkDown => self.driver.network_down(self.profile, false).await,
                Step::RemoveMachine(m) => self.remove_machine(m).await,
                Step::ForgetNetwork => self.driver.network_down(self.profile, true).await,
            }
        })
    }

    pub(super) fn home(&self) -> &'a Home {
        &self.ctx.home
    }

    fn cluster(&self) -> Result<&'a Cluster> {
        self.cluster.with_context(|| format!("profile {:?} has no configuration", self.profile))
    }

    fn node(&self, machine: &str) -> Result<&'a Node> {
        let cluster = self.cluster()?;
        let mut all = cluster.nodes.iter().chain(self.departing);
        all.find(|n| cluster.machine(n) == machine)
            .with_context(|| format!("no node {machine} in the configuration"))
    }

    fn client(&self) -> Result<kube::Client> {
        let cluster = self.cluster()?;
        self.driver.client(&Identity::load(self.home(), &cluster.name)?, cluster)
    }

    /// Of one API server, not of the address that all share.
    fn client_of(&self, node: &Node) -> Result<kube::Client> {
        let cluster = self.cluster()?;
        self.driver.client_of(&Identity::load(self.home(), &cluster.name)?, cluster, node)
    }

    fn nodes(&self) -> Result<&api::Nodes> {
        self.shared.nodes(self.home(), self.cluster()?, self.driver)
    }

    fn is_primary(&self, machine: &str) -> Result<bool> {
        let cluster = self.cluster()?;
        Ok(cluster.primary().is_some_and(|p| cluster.machine(p) == machine))
    }

    /// Waits for something of a node as long as the node does not say that it will never be.
    async fn unless_it_fails<T>(&self, machine: &str, wait: impl Future<Output = Result<T>>) -> Result<T> {
        let watch = async {
            loop {
                self.agent_is_up(machine).await?;
                sleep(WATCH).await;
            }
        };
        tokio::select! {
            met = wait => met,
            failed = watch => failed,
        }
    }

    /// Runs a command of ours in a node; its output, or an error with the end of it.
    pub(super) async fn in_node(&self, machine: &str, argv: &[String]) -> Result<String> {
        let output = self.driver.run(machine, argv).await?;
        if output.code != 0 {
            let all = [output.stdout, output.stderr].concat();
            let text = String::from_utf8_lossy(&all).into_owned();
            let lines: Vec<&str> = text.trim_end().lines().collect();
            let tail = lines[lines.len().saturating_sub(12)..].join("\n");
            bail!("`{}` ended with exit code {}:\n{tail}", argv.join(" "), output.code);
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}
