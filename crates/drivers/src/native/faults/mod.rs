//! Native machines, broken on purpose: by their cgroup, and by rules for the bridge that they all hang on.
//!
//! Packets are lost on the bridge, by cable, so that also those of pods and of the virtual address
//! are. The nodes cannot see or change the rules.

mod rules;
mod tc;

use anyhow::Result;
use async_trait::async_trait;
use model::injected::Slowness;
use model::{Fault, Reason};
use rustix::process::Signal;

use super::cgroup::Cgroup;
use super::machine::Paths;
use super::network::{NODE_LINK, cable_name};
use super::process::{self, Handle};
use super::{Native, guard};
use crate::faults::{Faults, Loss};
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
        guard::nft(&self.any_image()?, &rules::rules(&self.home, profile, losses))
    }

    async fn delay(&self, machine: &str, slowness: Option<Slowness>) -> Result<()> {
        let rootfs = self.any_image()?;
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
        let mut names: Vec<String> =
            self.cgroup(machine)?.members().into_iter().filter_map(program).collect();
        names.sort();
        names.dedup();
        Ok(names)
    }

    async fn kill_program(&self, machine: &str, name: &str) -> Result<usize> {
        let mut killed = 0;
        for pid in self.cgroup(machine)?.members() {
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

    async fn fill_disk(&self, machine: &str, _leave: u64) -> Result<(), Fault> {
        Err(Fault::new(
            Reason::Unimplemented,
            format!(
                "The disk of {machine} cannot be filled: nodes of the native driver share the host's disk, and all \
                 other nodes and the host would be without space too."
            ),
        ))
    }
}

impl Native {
    fn cgroup(&self, machine: &str) -> Result<Cgroup> {
        Cgroup::of(machine, Paths::new(&self.home, machine).dir())
    }
}

/// The name a process was called by, without its directory.
fn program(pid: u32) -> Option<String> {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let first = line.split(|b| *b == 0).next().filter(|word| !word.is_empty())?;
    Some(String::from_utf8_lossy(first).rsplit('/').next()?.to_owned())
}
