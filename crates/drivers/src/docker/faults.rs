//! Containers, broken on purpose: the engine stops and goes on with their processes; packets are lost and
//! delayed as with the native driver, at the cables that the engine gave them.

use anyhow::{Context, Result};
use async_trait::async_trait;
use model::injected::Slowness;
use netlink::Netlink;

use super::{Docker, container};
use crate::faults::{Faults, Loss};
use crate::machine::Paths;
use crate::native::cgroup::Cgroup;
use crate::native::faults::{kill_program, programs, rules, tc};
use crate::native::guard;
use crate::native::lender;
use crate::native::network::NODE_LINK;

#[async_trait]
impl Faults for Docker {
    async fn freeze(&self, machine: &str) -> Result<()> {
        let client = self.client().await?;
        let found = container::inspect(client, machine).await?;
        let found = found.with_context(|| format!("there is no container {machine}"))?;
        let frozen = client.pause_container(container::id(&found)?).await;
        frozen.with_context(|| format!("pause the container {machine}"))
    }

    async fn thaw(&self, machine: &str) -> Result<()> {
        let client = self.client().await?;
        match container::inspect(client, machine).await? {
            Some(found) if container::is_paused(&found) => client
                .unpause_container(container::id(&found)?)
                .await
                .with_context(|| format!("let the container {machine} go on")),
            _ => Ok(()),
        }
    }

    async fn lose(&self, profile: &str, losses: &[Loss]) -> Result<()> {
        let mut cables = std::collections::HashMap::new();
        for machine in losses.iter().flat_map(ends) {
            // One that does not run has no cable, and nothing to lose.
            let cable = self.cable(machine).await?.unwrap_or_else(|| "none".to_owned());
            cables.insert(machine.to_owned(), cable);
        }
        let cable = |machine: &str| cables.get(machine).cloned().unwrap_or_default();
        let image = lender::of_profile(&self.home, profile)?;
        guard::nft(&image, &rules::rules(&self.home, profile, losses, cable))
    }

    async fn delay(&self, machine: &str, slowness: Option<Slowness>) -> Result<()> {
        let rootfs = lender::of_machine(&self.home, machine)?;
        let Some(init) = Paths::new(&self.home, machine).running() else { return Ok(()) };
        let Some(cable) = self.cable(machine).await? else { return Ok(()) };
        for (inside, link) in [(None, cable), (Some(init.pid), NODE_LINK.to_owned())] {
            match slowness {
                Some(slowness) => tc::run(&rootfs, inside, &tc::netem(&link, slowness))?,
                // What is not there needs no removal.
                None => drop(tc::run(&rootfs, inside, &tc::nothing(&link))),
            }
        }
        Ok(())
    }

    async fn programs(&self, machine: &str) -> Result<Vec<String>> {
        Ok(self.cgroup(machine)?.map(|c| programs(&c)).unwrap_or_default())
    }

    async fn kill_program(&self, machine: &str, program: &str) -> Result<usize> {
        self.cgroup(machine)?.map_or(Ok(0), |c| kill_program(&c, program))
    }
}

fn ends(loss: &Loss) -> Vec<&str> {
    match loss {
        Loss::Of(machine) | Loss::Some(machine, _) => vec![machine],
        Loss::Between(a, b) => vec![a, b],
    }
}

impl Docker {
    /// `None` of a machine that does not run.
    pub(super) fn cgroup(&self, machine: &str) -> Result<Option<Cgroup>> {
        let init = Paths::new(&self.home, machine).running();
        init.map(|init| Cgroup::of_process(init.pid)).transpose()
    }

    /// The engine's name for the host's end of a machine's cable: the node knows its number.
    async fn cable(&self, machine: &str) -> Result<Option<String>> {
        let Some(init) = Paths::new(&self.home, machine).running() else { return Ok(None) };
        let file = format!("/proc/{}/root/sys/class/net/{NODE_LINK}/iflink", init.pid);
        let Ok(text) = std::fs::read_to_string(file) else { return Ok(None) };
        let index: u32 = text.trim().parse().context("the number of the cable's other end")?;
        let links = Netlink::open()?.links().await?;
        Ok(links.into_iter().find(|link| link.index == index).map(|link| link.name))
    }
}
