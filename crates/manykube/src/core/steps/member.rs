//! Control planes that come to an etcd which is there, and nodes that leave.

use std::time::{Duration, Instant};

use anyhow::Result;
use bootstrap::api;
use tokio::time::sleep;

use super::{LOOK_AGAIN, Runner};
use crate::core::etcd::Etcd;
use crate::core::machines::New;
use crate::core::{look, machines, setup};

/// Each try is a process in a node.
const PROMOTE_AGAIN: Duration = Duration::from_millis(200);
/// How long a control plane that was told to may take to let go of the virtual address.
const LET_GO: Duration = Duration::from_secs(2);
/// How long pods may take to leave a node that is to be deleted.
const DRAIN: Duration = Duration::from_secs(30);

impl Runner<'_> {
    /// etcd gets its new member before the machine is made, because the machine's files name all members.
    pub(super) async fn create_member(&self, machine: &str) -> Result<()> {
        let (cluster, node) = (self.cluster()?, self.node(machine)?);
        let pki = self.shared.pki(self.home(), cluster)?;
        let etcd = Etcd { home: self.home(), cluster, driver: self.driver, without: machine };
        let others = || cluster.control_planes().map(|n| cluster.machine(n)).filter(|m| m != machine);
        let others: Vec<String> = others().filter(|m| look::has_etcd_data(self.home(), m)).collect();
        let learner = async {
            etcd.forget(machine, node.ip).await?;
            // kubeadm does this itself.
            if self.by_kubeadm { Ok(None) } else { etcd.add_learner(machine, node.ip).await.map(Some) }
        };
        let members = tokio::select! {
            members = learner => members?,
            lost = self.majority_is_lost(&others) => return Err(lost.fault(self.ctx).into()),
        };
        let join = members.map(|members| bootstrap::etcd::initial_cluster(&members, machine));
        let new = New { pki, join, hold_api: !self.by_kubeadm, by_kubeadm: self.by_kubeadm };
        let spec = machines::spec(self.home(), cluster, node, Some(new))?;
        self.shared.check(&spec.image)?;
        self.driver.create(&spec).await?;
        crate::core::ssh::keys(self.home(), machine)?;
        setup::made(self.home(), cluster, node)
    }

    /// The mark goes last: whoever finds it makes the machine anew.
    pub(super) async fn kubeadm_join(&self, machine: &str) -> Result<()> {
        self.in_node(machine, &bootstrap::join_command()).await?;
        Ok(fs_err::remove_file(look::outside_file(self.home(), machine))?)
    }

    /// A learner that has not caught up is refused, so this is asked until it is not.
    pub(super) async fn promote_member(&self, machine: &str) -> Result<()> {
        if self.by_kubeadm {
            return self.kubeadm_join(machine).await;
        }
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
    pub(super) async fn remove_member(&self, machine: &str) -> Result<()> {
        let (cluster, node) = (self.cluster()?, self.node(machine)?);
        if cluster.find_node(machine).is_none() {
            self.let_go(machine).await;
        }
        if drivers::machine::var_dir(self.home(), machine).is_dir() {
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

    pub(super) async fn drain(&self, machine: &str) -> Result<()> {
        if let Err(unmet) = api::drain(&self.client()?, machine, DRAIN).await {
            self.ctx.warn(format!("Some pods did not leave {machine} and end with it: {}", unmet.last));
        }
        Ok(())
    }
}
