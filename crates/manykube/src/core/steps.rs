//! How each step of a plan is done.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use bootstrap::Identity;
use bootstrap::addons::{AddonOptions, StorageImages};
use bootstrap::api::{self, NodeLabels};
use drivers::{Driver, Io};
use futures::future::LocalBoxFuture;
use model::cluster::WaitFor;
use model::node_spec::PrepareState;
use model::{Cluster, Cni, Home, Node, VipBy};
use plan::Step;
use tokio::time::sleep;

use super::etcd::Etcd;
use super::machines::New;
use super::shared::Shared;
use super::{images, look, machines, manifests, setup};
use crate::ctx::Ctx;
use crate::report::{Event, Style};

/// A node that is asked to power off has this long before it is killed.
const GRACE: Duration = Duration::from_secs(10);
/// So many that three API servers can start at once and none is later for it.
const MANY_CPUS: u32 = 8;
/// Is anybody there at all?
const LOOK_ONCE: Duration = Duration::from_secs(2);
/// Between two looks at something that a user waits for.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// Between two looks whether a node gave up while something else is waited for.
const WATCH: Duration = Duration::from_millis(500);
/// Each try is a process in a node.
const PROMOTE_AGAIN: Duration = Duration::from_millis(200);
/// How long a control plane that was told to may take to let go of the virtual address.
const LET_GO: Duration = Duration::from_secs(2);
/// Seconds for one question to the cluster's DNS.
const LONGEST_LOOKUP: u32 = 10;
/// How long pods may take to leave a node that is to be deleted.
const DRAIN: Duration = Duration::from_secs(30);

pub struct Runner<'a> {
    pub ctx: &'a Ctx,
    /// `None` when a profile is removed whose configuration is lost.
    pub cluster: Option<&'a Cluster>,
    pub profile: &'a str,
    pub driver: &'a dyn Driver,
    /// What is left of the time the user gives us.
    pub patience: Duration,
    /// A node that is not in `cluster` any more, but still there.
    pub departing: Option<&'a Node>,
    pub shared: Shared,
}

impl<'a> Runner<'a> {
    pub fn new(ctx: &'a Ctx, cluster: &'a Cluster, driver: &'a dyn Driver, patience: Duration) -> Runner<'a> {
        Runner {
            ctx,
            cluster: Some(cluster),
            profile: &cluster.name,
            driver,
            patience,
            departing: None,
            shared: Shared::default(),
        }
    }

    /// A plan as the engine runs it.
    pub fn phases(&'a self, plan: &plan::Plan) -> Vec<engine::Phase<'a>> {
        let step = |step: &Step| engine::Step {
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
                Step::BuildImage => images::build_missing(self.ctx, self.cluster()?).await,
                Step::Certificates => self.shared.pki(self.home(), self.cluster()?).map(drop),
                Step::NetworkUp => self.network_up().await,
                Step::CreateMachine(m) => self.create(m).await,
                Step::Configure(m) => self.configure(m).await,
                Step::Resize(m) => self.resize(m).await,
                Step::BootMachine(m) => self.boot(m).await,
                Step::ReleaseApi(m) => self.release_api(m).await,
                Step::WaitApi(m) => self.wait_api(m).await,
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
                Step::WaitNode(m) => self.wait_node(m).await,
                Step::WaitSystem => self.wait_system().await,
                Step::Peers(m) => self.tell_peers(m).await,
                Step::CreateMember(m) => self.create_member(m).await,
                Step::PromoteMember(m) => self.promote_member(m).await,
                Step::Drain(m) => self.drain(m).await,
                Step::RemoveMember(m) => self.remove_member(m).await,
                Step::DeleteNode(m) => Ok(api::delete_node(&self.client()?, m, self.patience).await?),
                Step::PowerOff(m) => self.driver.power_off(m, GRACE).await,
                Step::NetworkDown => self.driver.network_down(self.profile, false).await,
                Step::RemoveMachine(m) => self.driver.remove(m).await,
                Step::ForgetNetwork => self.driver.network_down(self.profile, true).await,
            }
        })
    }

    fn home(&self) -> &'a Home {
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
        let identity = Identity::load(self.home(), &cluster.name)?;
        api::client(
            &identity,
            cluster.endpoint().context("the cluster has no control plane")?,
            cluster.api_port,
        )
    }

    /// Of one API server, not of the address that all share.
    fn client_of(&self, node: &Node) -> Result<kube::Client> {
        let cluster = self.cluster()?;
        api::client(&Identity::load(self.home(), &cluster.name)?, node.ip, cluster.api_port)
    }

    fn nodes(&self) -> Result<&api::Nodes> {
        self.shared.nodes(self.home(), self.cluster()?)
    }

    async fn network_up(&self) -> Result<()> {
        for notice in self.driver.network_up(self.cluster()?).await? {
            match notice {
                drivers::Notice::Told(text) => self.ctx.emit(Event::info(Style::Option, text)),
                drivers::Notice::Warning(text) => self.ctx.warn(text),
            }
        }
        Ok(())
    }

    async fn create(&self, machine: &str) -> Result<()> {
        let cluster = self.cluster()?;
        let node = self.node(machine)?;
        // Machines that are made this way form the cluster; who comes later is made as a member.
        let hold_api = node.control_plane && !self.is_primary(machine)?;
        let new = New { pki: self.shared.pki(self.home(), cluster)?, join: None, hold_api };
        let spec = machines::spec(self.home(), cluster, node, Some(new))?;
        self.shared.check(&spec.image)?;
        self.driver.create(&spec).await?;
        setup::made(self.home(), cluster, node)
    }

    /// A control plane's manifests are made anew as well, from the data that it has.
    async fn configure(&self, machine: &str) -> Result<()> {
        let (cluster, node) = (self.cluster()?, self.node(machine)?);
        let new = New { pki: self.shared.pki(self.home(), cluster)?, join: None, hold_api: false };
        let spec = machines::spec(self.home(), cluster, node, Some(new))?;
        self.driver.configure(&spec).await?;
        let prepared = bootstrap::paths::PREPARED.trim_start_matches("/var/");
        match fs_err::remove_file(drivers::native::var_dir(self.home(), machine).join(prepared)) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e.into()),
            _ => {}
        }
        setup::made(self.home(), cluster, node)
    }

    /// The control group first, then the node, which looks at it.
    async fn resize(&self, machine: &str) -> Result<()> {
        let (cluster, node) = (self.cluster()?, self.node(machine)?);
        let spec = machines::spec(self.home(), cluster, node, None)?;
        self.driver.resize(&spec).await.with_context(|| {
            format!("give it {} CPUs and {} MiB while it runs", spec.cpus, spec.memory_mib)
        })?;
        machines::tell_size(self.home(), machine, &spec)?;
        let host = crate::host::size();
        let size = (
            (spec.cpus < host.cpus).then_some(spec.cpus),
            (spec.memory_mib < host.memory_mib).then_some(spec.memory_mib),
        );
        // Without an API there is nobody to hear of it yet.
        if api::health(&self.client()?, LOOK_ONCE).await.is_ok() {
            api::node_sized(self.nodes()?, machine, size, self.patience).await?;
        }
        setup::made(self.home(), cluster, node)
    }

    /// etcd gets its new member before the machine is made, because the machine's files name all members.
    async fn create_member(&self, machine: &str) -> Result<()> {
        let (cluster, node) = (self.cluster()?, self.node(machine)?);
        let pki = self.shared.pki(self.home(), cluster)?;
        let etcd = Etcd { home: self.home(), cluster, driver: self.driver, without: machine };
        etcd.forget(machine, node.ip).await?;
        let members = etcd.add_learner(machine, node.ip).await?;
        let join = Some(bootstrap::etcd::initial_cluster(&members, machine));
        let new = New { pki, join, hold_api: true };
        let spec = machines::spec(self.home(), cluster, node, Some(new))?;
        self.shared.check(&spec.image)?;
        self.driver.create(&spec).await?;
        setup::made(self.home(), cluster, node)
    }

    /// A learner that has not caught up is refused, so this is asked until it is not.
    async fn promote_member(&self, machine: &str) -> Result<()> {
        let (cluster, node) = (self.cluster()?, self.node(machine)?);
        let etcd = Etcd { home: self.home(), cluster, driver: self.driver, without: machine };
        let began = Instant::now();
        loop {
            self.agent_is_up(machine).await?;
            match etcd.promote(machine, node.ip).await {
                Ok(()) => break,
                Err(e) if began.elapsed() > self.patience => return Err(e),
                Err(e) => tracing::debug!("not yet: {e:#}"),
            }
            sleep(PROMOTE_AGAIN).await;
        }
        fs_err::remove_file(look::outside_file(self.home(), machine))?;
        // Only now is there an etcd to ask.
        self.in_node(machine, &bootstrap::release_apiserver_command()).await.map(drop)
    }

    /// The mark comes first: from the moment etcd is told, this machine's copy of it is worth nothing.
    async fn remove_member(&self, machine: &str) -> Result<()> {
        let (cluster, node) = (self.cluster()?, self.node(machine)?);
        if cluster.find_node(machine).is_none() {
            self.let_go(machine).await;
        }
        if drivers::native::var_dir(self.home(), machine).is_dir() {
            fs_err::write(look::outside_file(self.home(), machine), "")?;
        }
        let etcd = Etcd { home: self.home(), cluster, driver: self.driver, without: machine };
        etcd.forget(machine, node.ip).await
    }

    /// Its agent was told that it is no control plane any more: once it has left the election, no new
    /// connection goes to its API server, which is about to lose its etcd.
    async fn let_go(&self, machine: &str) {
        let began = Instant::now();
        while began.elapsed() < LET_GO {
            match look::agent(self.home(), machine).await {
                Some(agent) if agent.vip.is_some() => sleep(LOOK_AGAIN).await,
                _ => return,
            }
        }
    }

    async fn drain(&self, machine: &str) -> Result<()> {
        if let Err(unmet) = api::drain(&self.client()?, machine, DRAIN).await {
            self.ctx.warn(format!("Some pods did not leave {machine} and end with it: {}", unmet.last));
        }
        Ok(())
    }

    async fn tell_peers(&self, machine: &str) -> Result<()> {
        let file = machines::peers_file(self.home(), self.cluster()?)?;
        drivers::native::write_file(self.home(), machine, &file)
    }

    /// Boots, and returns when the node's kubelet runs. A node that gave up is booted again.
    async fn boot(&self, machine: &str) -> Result<()> {
        match look::agent(self.home(), machine).await {
            // Somebody asked it to go down and was interrupted: let it, in order.
            Some(agent) if agent.stopping => self.driver.power_off(machine, GRACE).await?,
            Some(agent)
                if agent.problem.is_some() || matches!(agent.prepare, PrepareState::Failed { .. }) =>
            {
                self.driver.power_off(machine, Duration::ZERO).await?;
            }
            _ => {}
        }
        let spec = machines::spec(self.home(), self.cluster()?, self.node(machine)?, None)?;
        self.driver.boot(&spec).await?;
        let booting = self.shared.boots();
        while !self.agent_is_up(machine).await? {
            sleep(booting.pause()).await;
        }
        Ok(())
    }

    /// Fails when the node says that it will never be.
    async fn agent_is_up(&self, machine: &str) -> Result<bool> {
        let Some(agent) = look::agent(self.home(), machine).await else {
            let running = self
                .driver
                .list()
                .await?
                .iter()
                .any(|m| m.name == machine && m.state == drivers::MachineState::Running);
            if !running {
                bail!(
                    "the machine ended while it was starting (see {})",
                    drivers::native::shared_dir(self.home(), machine).join("agent.log").display()
                );
            }
            return Ok(false);
        };
        match (&agent.prepare, &agent.problem) {
            (PrepareState::Failed { step, output }, _) => bail!("{step} failed: {output}"),
            (_, Some(problem)) => bail!("{problem}"),
            _ => Ok(look::is_up(&agent)),
        }
    }

    /// The API server of this very node answers the administrator. What needs roles may take longer.
    async fn wait_api(&self, machine: &str) -> Result<()> {
        let client = self.client_of(self.node(machine)?)?;
        self.unless_it_fails(machine, async { Ok(api::serving(&client, self.patience).await.map(drop)?) })
            .await
    }

    async fn upload_config(&self) -> Result<()> {
        let cluster = self.cluster()?;
        let primary = cluster.machine(cluster.primary().context("the cluster has no control plane")?);
        api::node_registered(self.nodes()?, &primary, self.patience).await?;
        if matches!(cluster.vip_by, VipBy::KubeVip { .. }) {
            // kubeadm speaks to the virtual address, which kube-vip takes some time after the API is up.
            let identity = Identity::load(self.home(), &cluster.name)?;
            let shared = api::client(&identity, cluster.vip(), cluster.api_port)?;
            api::serving(&shared, self.patience).await?;
        }
        for argv in bootstrap::finish_commands(cluster) {
            self.in_node(&primary, &argv).await?;
        }
        Ok(())
    }

    async fn addons(&self) -> Result<()> {
        let cluster = self.cluster()?;
        let primary = cluster.primary().context("the cluster has no control plane")?;
        let manifests = self.in_node(&cluster.machine(primary), &bootstrap::addon_manifest_command()).await?;
        let image = machines::root_image(self.home(), cluster, primary)?;
        let options = AddonOptions {
            dns_log: false,
            storage: Some(StorageImages {
                provisioner: machines::find_image(&image, "/local-path-provisioner:")?,
                helper: machines::find_image(&image, "/busybox:")?,
            }),
        };
        let objects = bootstrap::addons::objects(cluster, &manifests, &options)?;
        // One that asks, instead of each object for itself.
        api::serving(&self.client()?, self.patience).await?;
        Ok(api::apply(&self.client()?, &objects, self.patience).await?)
    }

    /// From the copy that was made with the profile: the file itself may be gone by now.
    async fn pod_network(&self) -> Result<()> {
        let text = fs_err::read_to_string(self.home().profile_cni(self.profile))?;
        let objects = bootstrap::manifest::objects(&text)?;
        Ok(api::apply_foreign(&self.client()?, &objects, self.patience).await?)
    }

    /// They were held back so that the API server has the machine to itself while it starts.
    async fn release_controllers(&self, machine: &str) -> Result<()> {
        // The one of this node: that is whom they speak to.
        let (cluster, node) = (self.cluster()?, self.node(machine)?);
        api::ready(&self.client_of(node)?, self.patience).await?;
        self.in_node(machine, &bootstrap::own_api_command(cluster, node)).await?;
        self.stand_back(machine).await?;
        self.in_node(machine, &bootstrap::release_command()).await.map(drop)
    }

    /// On a host with many cores the others need not wait until DNS is there.
    async fn release_api(&self, machine: &str) -> Result<()> {
        let cluster = self.cluster()?;
        if let Some(primary) = cluster.primary().filter(|p| cluster.machine(p) != machine) {
            api::ready(&self.client_of(primary)?, self.patience).await?;
            if crate::host::size().cpus < MANY_CPUS {
                self.stand_back(machine).await?;
            }
        }
        self.in_node(machine, &bootstrap::release_apiserver_command()).await.map(drop)
    }

    fn is_primary(&self, machine: &str) -> Result<bool> {
        let cluster = self.cluster()?;
        Ok(cluster.primary().is_some_and(|p| cluster.machine(p) == machine))
    }

    /// A cluster needs one of each controller to come up; those of the other control planes only stand
    /// by, and start when DNS is there: until then the machine has better things to do.
    async fn stand_back(&self, machine: &str) -> Result<()> {
        let cluster = self.cluster()?;
        let primary = self.is_primary(machine)?;
        let first = !look::configured_file(self.home(), self.profile).exists();
        if primary
            || !first
            || cluster.cni == Cni::None
            || !self.asked(&[WaitFor::SystemPods, WaitFor::AppsRunning])
        {
            return Ok(());
        }
        Ok(api::dns_available(&self.client()?, self.patience).await?)
    }

    async fn clear_leases(&self) -> Result<()> {
        let client = self.client()?;
        api::ready(&client, self.patience).await?;
        Ok(api::delete_stale_leases(&client, self.patience).await?)
    }

    async fn adopt(&self, machine: &str) -> Result<()> {
        let (cluster, node, nodes) = (self.cluster()?, self.node(machine)?, self.nodes()?);
        api::node_registered(nodes, machine, self.patience).await?;
        let primary = cluster.primary().is_some_and(|p| p.name == node.name);
        let labels = NodeLabels {
            profile: cluster.name.clone(),
            version: format!("v{}", env!("CARGO_PKG_VERSION")),
            commit: crate::version::COMMIT.to_owned(),
            updated_at: jiff::Timestamp::now(),
            primary,
            control_plane: node.control_plane,
        };
        let pods = cluster.pod_cidr_of(node);
        let (wanted, old) = (cluster.config_of(node), setup::recorded(self.home(), machine));
        let old = old.unwrap_or_default().config;
        let wishes = api::Wishes {
            labels: wanted.labels,
            taints: wanted.taints,
            old_labels: old.labels,
            old_taints: old.taints,
        };
        api::adopt_node(nodes.client(), machine, &labels, &wishes, pods, self.patience).await?;
        setup::adopted(self.home(), cluster, node)
    }

    async fn wait_node(&self, machine: &str) -> Result<()> {
        // On a busy host an agent may be late with its answer.
        let boot_id = loop {
            if let Some(agent) = look::agent(self.home(), machine).await.filter(|a| !a.boot_id.is_empty()) {
                break agent.boot_id;
            }
            self.agent_is_up(machine).await?;
            sleep(LOOK_AGAIN).await;
        };
        self.unless_it_fails(machine, async {
            Ok(api::node_ready(self.nodes()?, machine, &boot_id, self.patience).await?)
        })
        .await
    }

    /// Waits for something of a node as long as the node does not say that it will never be.
    async fn unless_it_fails(&self, machine: &str, wait: impl Future<Output = Result<()>>) -> Result<()> {
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

    /// In the cluster, and beside it for when the cluster cannot be asked.
    async fn mark_configured(&self) -> Result<()> {
        api::mark(&self.client()?, self.patience).await?;
        fs_err::write(look::configured_file(self.home(), self.profile), "").map_err(Into::into)
    }

    async fn wait_system(&self) -> Result<()> {
        let (cluster, client) = (self.cluster()?, self.client()?);
        // Each that runs: the virtual address answers as soon as one does.
        let identity = Identity::load(self.home(), &cluster.name)?;
        let machines = look::machines_of(self.profile, self.cluster, self.driver).await?;
        let runs =
            |node: &&Node| machines.get(&cluster.machine(node)) == Some(&drivers::MachineState::Running);
        let each = cluster.control_planes().filter(runs).map(|node| {
            let client = api::client(&identity, node.ip, cluster.api_port);
            async move { anyhow::Ok(api::ready(&client?, self.patience).await?) }
        });
        futures::future::try_join_all(each).await?;
        if self.asked(&[WaitFor::SystemPods, WaitFor::AppsRunning]) {
            let dns = cluster.cni != Cni::None;
            api::system_pods_ready(&client, &look::control_planes(cluster), dns, self.patience).await?;
            if dns {
                self.dns_answers().await?;
            }
        }
        if self.asked(&[WaitFor::DefaultSa]) {
            api::default_service_account(&client, self.patience).await?;
        }
        Ok(())
    }

    /// Does the user want to wait for one of these?
    fn asked(&self, what: &[WaitFor]) -> bool {
        self.cluster.is_some_and(|c| what.iter().any(|w| c.wait.components.contains(w)))
    }

    /// Asked through the service address, as a pod would: this is DNS and kube-proxy at work, not what
    /// the API remembers of their pods.
    async fn dns_answers(&self) -> Result<()> {
        let cluster = self.cluster()?;
        let machine = cluster.machine(cluster.primary().context("the cluster has no control plane")?);
        let name = format!("kubernetes.default.svc.{}", cluster.network.dns_domain);
        let server = model::address::dns_service(cluster.network.service_cidr).to_string();
        // Each try has longer than the one before: on a slow host one second is never enough.
        for seconds in 1_u32.. {
            let limit = seconds.min(LONGEST_LOOKUP).to_string();
            let argv =
                ["busybox", "timeout", &limit, "busybox", "nslookup", &name, &server].map(str::to_owned);
            if self.driver.run(&machine, &argv, Io::Captured { stdin: Vec::new() }).await?.code == 0 {
                break;
            }
            sleep(LOOK_AGAIN).await;
        }
        Ok(())
    }

    /// Runs a command of ours in a node; its output, or an error with the end of it.
    async fn in_node(&self, machine: &str, argv: &[String]) -> Result<String> {
        let output = self.driver.run(machine, argv, Io::Captured { stdin: Vec::new() }).await?;
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
