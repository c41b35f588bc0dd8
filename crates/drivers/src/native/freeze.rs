//! The freezer of a machine's cgroup.

use anyhow::Result;
use async_trait::async_trait;

use super::Native;
use super::cgroup::Cgroup;
use crate::freeze::Freeze;
use crate::machine::Paths;

#[async_trait]
impl Freeze for Native {
    async fn freeze(&self, machine: &str) -> Result<()> {
        let cgroup = self.cgroup(machine)?;
        tokio::task::spawn_blocking(move || cgroup.freeze()).await?
    }

    async fn thaw(&self, machine: &str) -> Result<()> {
        self.cgroup(machine)?.unfreeze()
    }
}

impl Native {
    pub(super) fn cgroup(&self, machine: &str) -> Result<Cgroup> {
        Cgroup::of(machine, Paths::new(&self.home, machine).dir())
    }
}
