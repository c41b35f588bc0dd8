//! etcd's members, asked and changed through a control plane that runs.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use bootstrap::etcd::{self, Member};
use drivers::MachineState;
use model::{Cluster, Home};
use tokio::time::sleep;

use super::channel::Machines;
use super::membership::{self, Note};

const PATIENCE: Duration = Duration::from_secs(30);
/// Each try is a process in a node.
const AGAIN: Duration = Duration::from_millis(300);

pub struct Etcd<'a> {
    pub home: &'a Home,
    pub cluster: &'a Cluster,
    pub driver: &'a Machines,
    /// The machine that comes or goes: never the one to ask.
    pub without: &'a str,
}

impl Etcd<'_> {
    pub async fn members(&self) -> Result<Vec<Member>> {
        etcd::parse(&self.run(&etcd::list_command()).await?)
    }

    /// As etcd has them, each with its own word on whether it is well.
    pub async fn with_health(&self) -> Result<Vec<plan::Member>> {
        let members = self.members().await?;
        let said = self.run_some(&etcd::health_command(), |output| !output.stdout.is_empty()).await?;
        let healthy = etcd::parse_health(&said)?;
        Ok(members
            .iter()
            .map(|m| {
                let node = self.cluster.nodes.iter().find(|n| m.peers.contains(&etcd::peer_url(n.ip)));
                plan::Member {
                    machine: node.map_or_else(|| m.name.clone(), |n| self.cluster.machine(n)),
                    voter: !m.learner,
                    healthy: node.is_some_and(|n| healthy.contains(&n.ip)),
                }
            })
            .collect())
    }

    /// The member of a machine, by etcd's own list.
    pub async fn find(&self, machine: &str, ip: Ipv4Addr) -> Result<Option<Member>> {
        self.insist(async || Ok(etcd::find(&self.members().await?, machine, ip).cloned())).await
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

    /// Where the leader is removed, the others have to notice first: there are no writes for one or two seconds,
    /// and what was on its way to it waits for seven. Handed over it takes milliseconds. One that
    /// does not lead says so, and there is nothing to hand over.
    async fn dethrone(&self, members: &[Member], member: &Member, ip: Ipv4Addr) -> Result<()> {
        let running = self.running().await?;
        if !running.iter().any(|m| m == self.without) {
            return Ok(());
        }
        let heirs = members.iter().filter(|m| m.id != member.id && !m.learner);
        let Some(heir) = heirs.into_iter().find(|m| self.may_ask(&running, &m.name)) else { return Ok(()) };
        if let Err(why) = self.run_in(&heir.name, &etcd::move_leader_command(ip, heir), succeeded).await {
            tracing::debug!("etcd's leadership stays where it is: {why}");
        }
        Ok(())
    }

    /// All members, the new one among them.
    pub async fn add_learner(&self, machine: &str, ip: Ipv4Addr) -> Result<Vec<Member>> {
        self.insist(async || {
            let members = self.members().await?;
            if etcd::find(&members, machine, ip).is_none() {
                self.drop_stale_learners(&members).await?;
                self.run(&etcd::add_learner_command(machine, ip)).await?;
            }
            self.members().await
        })
        .await
    }

    /// etcd takes one learner at a time. One of a command that was cut short has no vote and does not run: it joins
    /// again when its node is started.
    async fn drop_stale_learners(&self, members: &[Member]) -> Result<()> {
        let running = self.running().await?;
        for learner in members.iter().filter(|m| m.learner) {
            let node = self.cluster.nodes.iter().find(|n| learner.peers.contains(&etcd::peer_url(n.ip)));
            if !node.is_some_and(|n| running.contains(&self.cluster.machine(n))) {
                self.run(&etcd::remove_command(learner)).await?;
            }
        }
        Ok(())
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

    async fn run(&self, argv: &[String]) -> Result<String> {
        self.run_some(argv, succeeded).await
    }

    /// Asks one control plane after the other until one gives an answer. One that is frozen or ends is passed over.
    async fn run_some(&self, argv: &[String], answered: fn(&protocol::Output) -> bool) -> Result<String> {
        let running = self.running().await?;
        let mut last = "no other control plane runs".to_owned();
        for machine in self.cluster.control_planes().map(|node| self.cluster.machine(node)) {
            if !self.may_ask(&running, &machine) {
                continue;
            }
            match self.run_in(&machine, argv, answered).await {
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
        let left =
            || membership::read(self.home, &self.cluster.name, machine).is_some_and(|n| n != Note::Unsure);
        machine != self.without && running.iter().any(|m| m == machine) && !left()
    }

    async fn run_in(
        &self,
        machine: &str,
        argv: &[String],
        answered: fn(&protocol::Output) -> bool,
    ) -> Result<String, String> {
        let ran = self.driver.run(machine, argv).await;
        let output = ran.map_err(|e| format!("{e:#}"))?;
        if answered(&output) {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        // etcdctl logs in JSON first and says what is wrong last.
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(text.trim_end().lines().last().unwrap_or_default().to_owned())
    }
}

fn succeeded(output: &protocol::Output) -> bool {
    output.code == 0
}
