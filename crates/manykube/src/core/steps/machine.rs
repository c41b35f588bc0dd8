//! What is done to a machine, whatever its node is for.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use bootstrap::api;
use model::node_spec::{NodeFile, PrepareState};
use tokio::time::{sleep, timeout};

use super::{GRACE, Runner};
use crate::core::machines::New;
use crate::core::membership::{self, Note};
use crate::core::{channel, look, machines, registry, setup, ssh};
use crate::report::{Event, Style};

/// So long may the processes of a machine that was killed take to end.
const DYING: Duration = Duration::from_secs(5);
/// Is anybody there at all?
const LOOK_ONCE: Duration = Duration::from_secs(2);

impl Runner<'_> {
    pub(in crate::core) async fn network_up(&self) -> Result<()> {
        for notice in self.driver.network_up(self.cluster()?).await? {
            match notice {
                drivers::Notice::Told(text) => self.ctx.emit(Event::info(Style::Option, text)),
                drivers::Notice::Warning(text) => self.ctx.warn(text),
            }
        }
        Ok(())
    }

    pub(super) async fn create(&self, machine: &str) -> Result<()> {
        let cluster = self.cluster()?;
        let node = self.node(machine)?;
        // Machines that are made this way form the cluster; who comes later is made as a member.
        let hold_api = node.control_plane && !self.is_primary(machine)?;
        let pki = self.shared.pki(self.home(), cluster)?;
        let new = New { pki, join: None, hold_api, by_kubeadm: self.by_kubeadm, leaving: &self.leaving };
        let spec = machines::spec(self.home(), cluster, node, Some(new))?;
        self.shared.check(&spec.image)?;
        if self.by_kubeadm {
            membership::write(self.home(), self.profile, machine, Note::Unsure)?;
        }
        self.driver.create(&spec).await?;
        ssh::keys(self.home(), self.driver, machine).await?;
        setup::made(self.home(), cluster, node)
    }

    /// A control plane's manifests are made again as well, from the data that it has.
    pub(super) async fn configure(&self, machine: &str) -> Result<()> {
        let (cluster, node) = (self.cluster()?, self.node(machine)?);
        let pki = self.shared.pki(self.home(), cluster)?;
        let new = New { pki, join: None, hold_api: false, by_kubeadm: false, leaving: &self.leaving };
        let spec = machines::spec(self.home(), cluster, node, Some(new))?;
        self.driver.configure(&spec).await?;
        look::forget_prepared(self.home(), machine)?;
        setup::made(self.home(), cluster, node)
    }

    /// The control group first, then the node, which looks at it.
    pub(super) async fn resize(&self, machine: &str) -> Result<()> {
        let (cluster, node) = (self.cluster()?, self.node(machine)?);
        let spec = machines::spec(self.home(), cluster, node, None)?;
        self.driver.resize(&spec).await.with_context(|| {
            format!("give it {} CPUs and {} MiB while it runs", spec.cpus, spec.memory_mib)
        })?;
        machines::tell_size(self.driver, machine, &spec).await?;
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

    pub(super) async fn tell_peers(&self, machine: &str) -> Result<()> {
        // First the key: an election without one is none.
        let mut files = self.election_key(machine)?;
        files.push(machines::peers_file(self.home(), self.cluster()?, &self.leaving)?);
        match self.driver.write(self.home(), machine, &files).await {
            // It takes part in nothing. The next start tells it.
            Err(e) if channel::is_frozen(&e) => {
                self.ctx.warn(format!(
                    "{machine} is frozen and is not told which nodes there are: run start after it is thawed"
                ));
                Ok(())
            }
            written => written,
        }
    }

    /// One that was made by an earlier manykube has none.
    fn election_key(&self, machine: &str) -> Result<Vec<NodeFile>> {
        let cluster = self.cluster()?;
        let node = cluster.find_node(machine);
        let key = node.map(|node| machines::election_file(self.home(), cluster, node)).transpose()?;
        Ok(key.flatten().into_iter().collect())
    }

    /// The API server looks at its files and takes up what is new.
    pub(super) async fn certify(&self, machine: &str) -> Result<()> {
        let pki = self.shared.pki(self.home(), self.cluster()?)?;
        self.driver.write(self.home(), machine, &bootstrap::api_certificate(pki)?).await
    }

    /// Boots, and returns when the node's kubelet runs. A node that gave up is booted again.
    pub(in crate::core) async fn boot(&self, machine: &str) -> Result<()> {
        match self.driver.state(machine).await {
            // Somebody asked it to go down and was interrupted: let it, in order.
            Some(agent) if agent.stopping => self.driver.power_off(machine, GRACE).await?,
            Some(agent)
                if agent.problem.is_some() || matches!(agent.prepare, PrepareState::Failed { .. }) =>
            {
                self.driver.power_off(machine, Duration::ZERO).await?;
            }
            // Its cable is gone, and with it all addresses and routes that were on it.
            Some(_) if !self.driver.is_connected(machine).await? => {
                self.driver.power_off(machine, GRACE).await?;
            }
            _ => {}
        }
        let met = drivers::machine::wait_end(self.home(), machine).ok();
        match (self.bring_up(machine).await, met) {
            // It was dying when we came: its processes take a moment to end.
            (Err(why), Some(end)) => match timeout(DYING, end).await {
                Ok(_) => self.bring_up(machine).await?,
                Err(_) => return Err(why),
            },
            (result, _) => result?,
        }
        self.trust(machine).await?;
        let unsure = membership::read(self.home(), self.profile, machine) == Some(Note::Unsure);
        if unsure && !self.node(machine)?.control_plane {
            // kubeadm takes in no node that the API knows as Ready; what one that did not quite join left there goes.
            api::delete_node(&self.client()?, machine, self.patience).await?;
            self.kubeadm_join(machine).await?;
        }
        Ok(())
    }

    async fn bring_up(&self, machine: &str) -> Result<()> {
        let spec = machines::spec(self.home(), self.cluster()?, self.node(machine)?, None)?;
        if drivers::machine::init_of(self.home(), machine).is_none() {
            registry::place(self.home(), self.cluster()?, self.driver, machine).await?;
            self.place_files(machine).await?;
            self.driver.write(self.home(), machine, &self.election_key(machine)?).await?;
        }
        self.driver.boot(&spec).await?;
        let booting = self.shared.boots();
        while !self.agent_is_up(machine).await? {
            sleep(booting.pause()).await;
        }
        Ok(())
    }

    /// Fails when the node says that it will never be.
    pub(super) async fn agent_is_up(&self, machine: &str) -> Result<bool> {
        let Some(agent) = self.driver.state(machine).await else {
            let running = self
                .driver
                .list()
                .await?
                .iter()
                .any(|m| m.name == machine && m.state == drivers::MachineState::Running);
            if !running {
                bail!("{}", ended_early(&drivers::machine::log(self.home(), machine)));
            }
            return Ok(false);
        };
        match (&agent.prepare, &agent.problem) {
            (PrepareState::Failed { step, output }, _) => bail!("{step} failed: {output}"),
            (_, Some(problem)) => bail!("{problem}"),
            _ => Ok(look::is_up(&agent)),
        }
    }
}

/// What it said last is mostly why.
fn ended_early(said: &str) -> String {
    let last = said.lines().rev().map(str::trim).find(|line| !line.is_empty());
    let why = last.map(|line| format!(": {line}")).unwrap_or_default();
    format!("the machine ended while it was starting{why}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_words_of_a_machine() {
        assert_eq!(
            ended_early("boot\ntake /m/disk: it is still in use\n\n"),
            "the machine ended while it was starting: take /m/disk: it is still in use"
        );
        assert_eq!(ended_early(""), "the machine ended while it was starting");
    }
}
