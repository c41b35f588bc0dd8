//! Control planes that come to an etcd which is there, and nodes that leave.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use bootstrap::api;
use engine::crash;
use model::{Home, Node};
use tokio::time::sleep;

use super::{GRACE, LOOK_AGAIN, Runner};
use crate::core::etcd::Etcd;
use crate::core::machines::New;
use crate::core::membership::{self, Note};
use crate::core::{look, machines, setup};

/// Each try is a process in a node.
const PROMOTE_AGAIN: Duration = Duration::from_millis(200);
/// How long a control plane that was told to may take to let go of the virtual address.
const LET_GO: Duration = Duration::from_secs(2);
/// How long pods may take to leave a node that is to be deleted.
const DRAIN: Duration = Duration::from_secs(30);

fn exists(home: &Home, machine: &str) -> bool {
    drivers::machine::driver_of(home, machine).is_some()
}

impl Runner<'_> {
    /// etcd gets its new member before the machine has its files, because they name all members. A machine that is
    /// there keeps all else that it has.
    pub(super) async fn create_member(&self, machine: &str) -> Result<()> {
        let (cluster, node) = (self.cluster()?, self.node(machine)?);
        let others = || cluster.control_planes().map(|n| cluster.machine(n)).filter(|m| m != machine);
        let mut members = Vec::new();
        for other in others() {
            if look::has_etcd_data(self.home(), self.driver, &other).await {
                members.push(other);
            }
        }
        tokio::select! {
            made = self.join_etcd(machine, node) => made,
            lost = self.majority_is_lost(&members) => Err(lost.fault(self.ctx).into()),
        }
    }

    async fn join_etcd(&self, machine: &str, node: &Node) -> Result<()> {
        let etcd = self.etcd(machine)?;
        let known = etcd.find(machine, node.ip).await?;
        if known.is_some() && self.is_whole(machine).await {
            return self.note(machine, Note::Unsure);
        }
        etcd.forget(machine, node.ip).await?;
        crash::place(&format!("etcd-forgot/{machine}"), "after");
        // From here on what the machine has of etcd's data is old: etcd said so.
        self.note(machine, Note::Left)?;
        if exists(self.home(), machine) {
            self.driver.power_off(machine, GRACE).await?;
            look::forget_prepared(self.home(), machine)?;
        }
        // kubeadm adds the member itself.
        let members = if self.by_kubeadm { None } else { Some(etcd.add_learner(machine, node.ip).await?) };
        crash::place(&format!("etcd-added/{machine}"), "after");
        let join = members.map(|members| bootstrap::etcd::initial_cluster(&members, machine));
        self.make_member(machine, node, join).await?;
        self.note(machine, Note::Unsure)
    }

    /// It has etcd's data, and its manifests were made for it.
    async fn is_whole(&self, machine: &str) -> bool {
        membership::read(self.home(), self.profile, machine) == Some(Note::Unsure)
            && look::has_etcd_data(self.home(), self.driver, machine).await
            && look::is_prepared(self.home(), machine)
    }

    async fn make_member(&self, machine: &str, node: &Node, join: Option<String>) -> Result<()> {
        let cluster = self.cluster()?;
        let pki = self.shared.pki(self.home(), cluster)?;
        let new = New {
            pki,
            join,
            hold_api: !self.by_kubeadm,
            by_kubeadm: self.by_kubeadm,
            leaving: &self.leaving,
        };
        let spec = machines::spec(self.home(), cluster, node, Some(new))?;
        if exists(self.home(), machine) {
            self.driver.configure(&spec).await?;
        } else {
            self.shared.check(&spec.image)?;
            self.driver.create(&spec).await?;
        }
        crate::core::ssh::keys(self.home(), self.driver, machine).await?;
        setup::made(self.home(), cluster, node)
    }

    /// The note goes last: a command that finds it asks etcd again.
    pub(super) async fn kubeadm_join(&self, machine: &str) -> Result<()> {
        self.in_node(machine, &bootstrap::join_command()).await?;
        membership::clear(self.home(), self.profile, machine)
    }

    /// A learner that has not caught up is refused, so this is asked until it is not.
    pub(super) async fn promote_member(&self, machine: &str) -> Result<()> {
        let node = self.node(machine)?;
        let etcd = self.etcd(machine)?;
        if self.by_kubeadm && etcd.find(machine, node.ip).await?.is_none() {
            return self.kubeadm_join(machine).await;
        }
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
        crash::place(&format!("etcd-promoted/{machine}"), "after");
        membership::clear(self.home(), self.profile, machine)?;
        // Only now is there an etcd to ask.
        self.in_node(machine, &bootstrap::release_apiserver_command()).await.map(drop)
    }

    /// The note comes first: whatever happens from here on, the next command asks etcd about this machine.
    pub(super) async fn remove_member(&self, machine: &str) -> Result<()> {
        let node = self.node(machine)?;
        self.let_go(machine).await;
        if membership::read(self.home(), self.profile, machine).is_none() {
            self.note(machine, Note::Unsure)?;
        }
        self.etcd(machine)?.forget(machine, node.ip).await.with_context(|| {
            format!("etcd did not let {machine} go, so its machine and its data stay as they are")
        })?;
        crash::place(&format!("etcd-forgot/{machine}"), "after");
        self.note(machine, Note::Left)
    }

    fn etcd<'b>(&'b self, machine: &'b str) -> Result<Etcd<'b>> {
        Ok(Etcd { home: self.home(), cluster: self.cluster()?, driver: self.driver, without: machine })
    }

    fn note(&self, machine: &str, note: Note) -> Result<()> {
        membership::write(self.home(), self.profile, machine, note)
    }

    pub(super) fn note_replaced(&self, machine: &str) -> Result<()> {
        self.note(machine, Note::Replaced)
    }

    /// The machine goes, and with it what is known of it.
    pub(super) async fn remove_machine(&self, machine: &str) -> Result<()> {
        self.driver.remove(machine).await?;
        membership::clear(self.home(), self.profile, machine)
    }

    /// Its agent was told that it is no control plane any more: once it has left the election, no new
    /// connection goes to its API server, which is about to lose its etcd.
    async fn let_go(&self, machine: &str) {
        let began = Instant::now();
        while began.elapsed() < LET_GO {
            match self.driver.state(machine).await {
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
