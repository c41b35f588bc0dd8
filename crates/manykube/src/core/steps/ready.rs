//! The nodes in the API, and whether all is ready.

use std::convert::Infallible;
use std::time::Duration;

use anyhow::{Context, Result};
use bootstrap::Identity;
use bootstrap::api::{self, NodeLabels};
use model::cluster::WaitFor;
use model::{Cni, Node};
use tokio::time::sleep;

use super::{LOOK_AGAIN, Runner};
use crate::core::{look, setup};

/// Seconds for one question to the cluster's DNS.
const LONGEST_LOOKUP: u32 = 10;
/// A kubelet that runs and has an API to speak to has made its Node object after this long.
const MISSING: Duration = Duration::from_secs(8);

impl Runner<'_> {
    pub(super) async fn adopt(&self, machine: &str) -> Result<()> {
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

    /// A kubelet makes its Node object when it starts, and never again; the agent starts one that ended.
    pub(super) async fn register(&self, machine: &str) -> Result<()> {
        let end = "busybox pidof kubelet | busybox xargs -r kill";
        self.in_node(machine, &["/bin/sh", "-c", end].map(str::to_owned)).await.map(drop)
    }

    pub(super) async fn wait_node(&self, machine: &str) -> Result<()> {
        // On a busy host an agent may be late with its answer.
        let boot_id = loop {
            if let Some(agent) = self.driver.state(machine).await.filter(|a| !a.boot_id.is_empty()) {
                break agent.boot_id;
            }
            self.agent_is_up(machine).await?;
            sleep(LOOK_AGAIN).await;
        };
        let ready = self.unless_it_fails(machine, async {
            Ok(api::node_ready(self.nodes()?, machine, &boot_id, self.patience).await?)
        });
        let seen = tokio::select! {
            ready = ready => ready?,
            never = self.register_the_deleted(machine) => match never? {},
        };
        // The same for what such a node has lost with its object.
        match look::is_adopted(self.cluster()?, &seen) {
            true => Ok(()),
            false => self.adopt(machine).await,
        }
    }

    /// When the plan was made there may have been no API to tell that this node is not in it. Only where a
    /// node can have been deleted: one that never was there takes its time.
    async fn register_the_deleted(&self, machine: &str) -> Result<Infallible> {
        loop {
            sleep(MISSING).await;
            if look::configured_file(self.home(), self.profile).exists()
                && let Ok(seen) = api::observe_nodes(&self.client()?, MISSING).await
                && !seen.contains_key(machine)
            {
                self.register(machine).await?;
            }
        }
    }

    pub(super) async fn wait_system(&self) -> Result<()> {
        let (cluster, client) = (self.cluster()?, self.client()?);
        // Each that runs: the virtual address answers as soon as one does.
        let identity = Identity::load(self.home(), &cluster.name)?;
        let machines = look::machines_of(self.profile, self.cluster, self.driver).await?;
        let runs =
            |node: &&Node| machines.get(&cluster.machine(node)) == Some(&drivers::MachineState::Running);
        let each = cluster.control_planes().filter(runs).map(|node| {
            let client = self.driver.client_of(&identity, cluster, node);
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
    pub(super) fn asked(&self, what: &[WaitFor]) -> bool {
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
            if self.driver.run(&machine, &argv).await?.code == 0 {
                break;
            }
            sleep(LOOK_AGAIN).await;
        }
        Ok(())
    }
}
