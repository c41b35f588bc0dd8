//! The API servers, and all that makes a cluster of them.

use std::time::Duration;

use anyhow::{Context, Result};
use bootstrap::addons::{AddonOptions, StorageImages};
use bootstrap::{Identity, api};
use model::cluster::WaitFor;
use model::{Cni, VipBy};
use tokio::time::sleep;

use super::Runner;
use crate::core::{look, machines, recover};

/// So many that three API servers can start at once and none is later for it.
const MANY_CPUS: u32 = 8;
/// Between two looks whether etcd has lost its majority; its first election takes less.
const QUORUM: Duration = Duration::from_secs(5);

impl Runner<'_> {
    /// The API server of this very node answers the administrator. What needs roles may take longer.
    pub(super) async fn wait_api(&self, machine: &str) -> Result<()> {
        let client = self.client_of(self.node(machine)?)?;
        let serving = self
            .unless_it_fails(machine, async { Ok(api::serving(&client, self.patience).await.map(drop)?) });
        let own = [machine.to_owned()];
        tokio::select! {
            met = serving => met,
            lost = self.majority_is_lost(&own) => Err(lost.fault(self.ctx).into()),
        }
    }

    /// By the word of one of these control planes. Never returns while etcd may still come up. Only a cluster
    /// that was set up has a majority to lose.
    pub(super) async fn majority_is_lost(&self, members: &[String]) -> recover::Lost {
        loop {
            sleep(QUORUM).await;
            let Ok(cluster) = self.cluster() else { continue };
            if !look::configured_file(self.home(), self.profile).exists() {
                continue;
            }
            let Ok(pki) = self.shared.pki(self.home(), cluster) else { continue };
            for node in members.iter().filter_map(|m| self.node(m).ok()) {
                if let Some(lost) = recover::lost_for_good(self.home(), cluster, self.driver, pki, node).await
                {
                    return lost;
                }
            }
        }
    }

    pub(super) async fn upload_config(&self) -> Result<()> {
        let cluster = self.cluster()?;
        let primary = cluster.machine(cluster.primary().context("the cluster has no control plane")?);
        api::node_registered(self.nodes()?, &primary, self.patience).await?;
        if matches!(cluster.vip_by, VipBy::KubeVip { .. }) {
            // kubeadm speaks to the virtual address, which kube-vip takes some time after the API is up.
            let identity = Identity::load(self.home(), &cluster.name)?;
            let shared = self.driver.client_at(&identity, cluster, cluster.vip())?;
            api::serving(&shared, self.patience).await?;
        }
        for argv in bootstrap::finish_commands(cluster) {
            self.in_node(&primary, &argv).await?;
        }
        Ok(())
    }

    pub(super) async fn addons(&self) -> Result<()> {
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
    pub(super) async fn pod_network(&self) -> Result<()> {
        let text = fs_err::read_to_string(self.home().profile_cni(self.profile))?;
        let objects = bootstrap::manifest::objects(&text)?;
        Ok(api::apply_foreign(&self.client()?, &objects, self.patience).await?)
    }

    /// They were held back so that the API server has the machine to itself while it starts.
    pub(super) async fn release_controllers(&self, machine: &str) -> Result<()> {
        // The one of this node: that is whom they speak to.
        let (cluster, node) = (self.cluster()?, self.node(machine)?);
        api::ready(&self.client_of(node)?, self.patience).await?;
        self.in_node(machine, &bootstrap::own_api_command(cluster, node)).await?;
        self.stand_back(machine).await?;
        self.in_node(machine, &bootstrap::release_command()).await.map(drop)
    }

    /// On a host with many cores the others need not wait until DNS is there.
    pub(super) async fn release_api(&self, machine: &str) -> Result<()> {
        let cluster = self.cluster()?;
        if let Some(primary) = cluster.primary().filter(|p| cluster.machine(p) != machine) {
            api::ready(&self.client_of(primary)?, self.patience).await?;
            if crate::host::size().cpus < MANY_CPUS {
                self.stand_back(machine).await?;
            }
        }
        self.in_node(machine, &bootstrap::release_apiserver_command()).await.map(drop)
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

    pub(super) async fn clear_leases(&self) -> Result<()> {
        let client = self.client()?;
        api::ready(&client, self.patience).await?;
        Ok(api::delete_stale_leases(&client, self.patience).await?)
    }

    /// In the cluster, and beside it for when the cluster cannot be asked.
    pub(super) async fn mark_configured(&self) -> Result<()> {
        api::mark(&self.client()?, self.patience).await?;
        Ok(base::atomic::replace(&look::configured_file(self.home(), self.profile), b"", 0o644)?)
    }
}
