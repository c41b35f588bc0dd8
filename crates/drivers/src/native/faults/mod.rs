//! Native machines, broken on purpose: by their cgroup, and by rules for the bridge that they all hang on.
//!
//! Packets are lost on the bridge, by cable, so that also those of pods and of the virtual address
//! are. The nodes cannot see or change the rules.

pub mod rules;
pub mod tc;

use anyhow::Result;
use async_trait::async_trait;
use model::injected::Slowness;
use rustix::process::Signal;

use super::cgroup::Cgroup;
use super::network::{NODE_LINK, cable_name};
use super::{Native, guard, lender};
use crate::faults::{Faults, Loss};
use crate::machine::Paths;
use crate::process::{self, Handle};
pub use rules::forget;

#[async_trait]
impl Faults for Native {
    async fn freeze(&self, machine: &str) -> Result<()> {
        let cgroup = self.cgroup(machine)?;
        tokio::task::spawn_blocking(move || cgroup.freeze()).await?
    }

    async fn thaw(&self, machine: &str) -> Result<()> {
        self.cgroup(machine)?.unfreeze()
    }

    async fn lose(&self, profile: &str, losses: &[Loss]) -> Result<()> {
        guard::nft(
            &lender::of_profile(&self.home, profile)?,
            &rules::rules(&self.home, profile, losses, |m| cable_name(&self.home, m)),
        )
    }

    async fn delay(&self, machine: &str, slowness: Option<Slowness>) -> Result<()> {
        let rootfs = lender::of_machine(&self.home, machine)?;
        let Some(init) = Paths::new(&self.home, machine).running() else { return Ok(()) };
        let ends = [(None, cable_name(&self.home, machine)), (Some(init.pid), NODE_LINK.to_owned())];
        for (inside, link) in ends {
            match slowness {
                Some(slowness) => tc::run(&rootfs, inside, &tc::netem(&link, slowness))?,
                // What is not there needs no removal.
                None => drop(tc::run(&rootfs, inside, &tc::nothing(&link))),
            }
        }
        Ok(())
    }

    async fn programs(&self, machine: &str) -> Result<Vec<String>> {
        Ok(programs(&self.cgroup(machine)?))
    }

    async fn kill_program(&self, machine: &str, name: &str) -> Result<usize> {
        kill_program(&self.cgroup(machine)?, name)
    }
}

impl Native {
    fn cgroup(&self, machine: &str) -> Result<Cgroup> {
        Cgroup::of(machine, Paths::new(&self.home, machine).dir())
    }
}

/// By the names they were called by.
pub fn programs(cgroup: &Cgroup) -> Vec<String> {
    let mut names: Vec<String> = cgroup.members().into_iter().filter_map(program).collect();
    names.sort();
    names.dedup();
    names
}

pub fn kill_program(cgroup: &Cgroup, name: &str) -> Result<usize> {
    let mut killed = 0;
    for pid in cgroup.members() {
        let Ok(identity) = process::identify(pid) else { continue };
        // Asked after the identity was taken: a number that changed hands meanwhile is not killed.
        if program(pid).as_deref() == Some(name)
            && let Some(handle) = Handle::open(&identity)?
        {
            handle.signal(Signal::KILL)?;
            killed += 1;
        }
    }
    Ok(killed)
}

/// The name a process was called by, without its directory.
fn program(pid: u32) -> Option<String> {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let first = line.split(|b| *b == 0).next().filter(|word| !word.is_empty())?;
    Some(String::from_utf8_lossy(first).rsplit('/').next()?.to_owned())
}
