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
            let Some(member) = etcd::find(&members, machine, ip) else { return Ok(()) };
            self.dethrone(&members, member, ip).await?;
            self.run(&etcd::remove_command(member)).await.map(drop)
        })
        .await
    }

    /// A leader that is removed leaves the others to find out: nobody writes for one or two seconds,
    /// and what was on its way to it waits for seven. Handed over it takes milliseconds. One that
    /// does not lead says so, and there is nothing to hand over.
    async fn dethrone(&self, members: &[Member], member: &Member, ip: Ipv4Addr) -> Result<()> {
        let running = self.running().await?;
        if !running.iter().any(|m| m == self.without) {
            return Ok(());
        }
        let heirs = members.iter().filter(|m| m.id != member.id && !m.learner);
        let Some(heir) = heirs.into_iter().find(|m| self.may_ask(&running, &m.name)) else { return Ok(()) };
        if let Err(why) = self.run_in(&heir.name, &etcd::move_leader_command(ip, heir)).await? {
            tracing::debug!("etcd's leadership stays where it is: {why}");
        }
        Ok(())
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
        let running = self.running().await?;
        let mut last = "no other control plane runs".to_owned();
        for machine in self.cluster.control_planes().map(|node| self.cluster.machine(node)) {
            if !self.may_ask(&running, &machine) {
                continue;
            }
            match self.run_in(&machine, argv).await? {
                Ok(said) => return Ok(said),
                Err(why) => last = why,
            }
        }
        bail!("etcd: {last}")
    }

    /// Names of all machines that run.
    async fn running(&self) -> Result<Vec<String>> {
        let all = self.driver.list().await?.into_iter();
        Ok(all.filter(|m| m.state == MachineState::Running).map(|m| m.name).collect())
    }

    fn may_ask(&self, running: &[String], machine: &str) -> bool {
        machine != self.without
            && running.iter().any(|m| m == machine)
            && !look::outside_file(self.home, machine).exists()
    }

    async fn run_in(&self, machine: &str, argv: &[String]) -> Result<Result<String, String>> {
        let output = self.driver.run(machine, argv, Io::Captured { stdin: Vec::new() }).await?;
        if output.code == 0 {
            return Ok(Ok(String::from_utf8_lossy(&output.stdout).into_owned()));
        }
        // etcdctl logs in JSON first and says what is wrong last.
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        Ok(Err(text.trim_end().lines().last().unwrap_or_default().to_owned()))
    }
}
