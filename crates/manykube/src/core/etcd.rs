//! etcd's members, asked and changed through a control plane that runs.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use bootstrap::etcd::{self, Member};
use drivers::{Driver, Io, MachineState};
use model::{Cluster, Home};
use tokio::time::sleep;

use super::look;

const PATIENCE: Duration = Duration::from_secs(30);
/// Each try is a process in a node.
const AGAIN: Duration = Duration::from_millis(300);

pub struct Etcd<'a> {
    pub home: &'a Home,
    pub cluster: &'a Cluster,
    pub driver: &'a dyn Driver,
    /// The machine that comes or goes: never the one to ask.
    pub without: &'a str,
}

impl Etcd<'_> {
    pub async fn members(&self) -> Result<Vec<Member>> {
        etcd::parse(&self.run(&etcd::list_command()).await?)
    }

    /// Removes the member of a machine, if there is one.
    pub async fn forget(&self, machine: &str, ip: Ipv4Addr) -> Result<()> {
        self.insist(async || {
            let members = self.members().await?;
            match etcd::find(&members, machine, ip) {
                Some(member) => self.run(&etcd::remove_command(member)).await.map(drop),
                None => Ok(()),
            }
        })
        .await
    }

    /// All members, the new one among them.
    pub async fn add_learner(&self, machine: &str, ip: Ipv4Addr) -> Result<Vec<Member>> {
        self.insist(async || {
            let members = self.members().await?;
            if etcd::find(&members, machine, ip).is_none() {
                self.run(&etcd::add_learner_command(machine, ip)).await?;
            }
            self.members().await
        })
        .await
    }

    /// etcd refuses changes until all its members have known each other for five seconds.
    async fn insist<T>(&self, change: impl AsyncFn() -> Result<T>) -> Result<T> {
        let began = Instant::now();
        loop {
            match change().await {
                Err(e) if began.elapsed() < PATIENCE => tracing::debug!("not yet: {e:#}"),
                result => return result,
            }
            sleep(AGAIN).await;
        }
    }

    pub async fn promote(&self, machine: &str, ip: Ipv4Addr) -> Result<()> {
        let members = self.members().await?;
        let member = etcd::find(&members, machine, ip).context("etcd does not know the new member")?;
        if member.learner {
            self.run(&etcd::promote_command(member)).await?;
        }
        Ok(())
    }

    /// Asks one control plane after the other until one answers.
    async fn run(&self, argv: &[String]) -> Result<String> {
        let running = self.driver.list().await?;
        let mut last = "no other control plane runs".to_owned();
        for node in self.cluster.control_planes() {
            let machine = self.cluster.machine(node);
            let runs = running.iter().any(|m| m.name == machine && m.state == MachineState::Running);
            if machine == self.without || !runs || look::outside_file(self.home, &machine).exists() {
                continue;
            }
            let output = self.driver.run(&machine, argv, Io::Captured { stdin: Vec::new() }).await?;
            if output.code == 0 {
                return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
            }
            // etcdctl logs in JSON first and says what is wrong last.
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            last = text.trim_end().lines().last().unwrap_or_default().to_owned();
        }
        bail!("etcd: {last}")
    }
}
