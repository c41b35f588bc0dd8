//! A driver, and the channels into its nodes that run. Everything that the host wants from such a node goes by its channel.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use bootstrap::Identity;
use bootstrap::api::{self, Dial};
use drivers::{Driver, NoStream, machine};
use futures::future::join_all;
use model::node_spec::{NodeFile, NodeState};
use model::{Cluster, Home, Node as ClusterNode};
use protocol::{Node, Output};
use tokio::time::timeout;

/// An agent answers from memory; one that does not within this time is stuck.
const ANSWER: Duration = Duration::from_secs(3);
/// One of several that does not answer within this time is asked last.
const LOOK: Duration = Duration::from_secs(1);

#[derive(Clone)]
pub struct Machines {
    driver: Arc<dyn Driver>,
    open: Arc<Mutex<HashMap<String, Node>>>,
}

impl Deref for Machines {
    type Target = dyn Driver;

    fn deref(&self) -> &(dyn Driver + 'static) {
        &*self.driver
    }
}

impl Machines {
    pub fn new(driver: Arc<dyn Driver>) -> Machines {
        Machines { driver, open: Arc::default() }
    }

    /// The agent of a node that runs. A channel that is open is used again.
    pub async fn node(&self, machine: &str) -> Result<Node> {
        let known = self.open.lock().unwrap_or_else(PoisonError::into_inner).get(machine).cloned();
        if let Some(node) = known.filter(Node::is_open) {
            return Ok(node);
        }
        let (machines, machine) = (self.clone(), machine.to_owned());
        // A caller that does not wait for it any more has it the next time.
        let opened = tokio::spawn(async move {
            let node = Node::open(&machine, machines.driver.connect(&machine).await?).await?;
            machines.open.lock().unwrap_or_else(PoisonError::into_inner).insert(machine, node.clone());
            Ok(node)
        });
        opened.await.context("open a channel")?
    }

    /// `None` while its agent does not answer.
    pub async fn state(&self, machine: &str) -> Option<NodeState> {
        let asked =
            timeout(ANSWER, async { Ok::<_, anyhow::Error>(self.node(machine).await?.state().await?) });
        match asked.await {
            Ok(Ok(state)) => return Some(state),
            Ok(Err(e)) => tracing::debug!("{e:#}"),
            Err(_) => tracing::debug!("the agent of {machine} did not answer within {} s", ANSWER.as_secs()),
        }
        // What does not answer now is asked on a new channel the next time.
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(machine);
        None
    }

    /// Streams to addresses of the cluster, opened by the first of these nodes that can.
    pub fn dial(&self, via: Vec<String>) -> Dial {
        let machines = self.clone();
        Arc::new(move |to| {
            let (machines, via) = (machines.clone(), via.clone());
            Box::pin(async move { machines.dial_by(&machines.holder_first(&via).await, to).await })
        })
    }

    /// One stream, opened by the first of these nodes that can.
    pub async fn dial_by(&self, via: &[String], to: SocketAddrV4) -> io::Result<base::Stream> {
        let target = [format!("tcp:{to}")];
        let mut refused = io::Error::other("no node runs");
        for machine in via {
            let dialled = timeout(ANSWER, async {
                let node = self.node(machine).await?;
                Ok::<_, anyhow::Error>(node.dial(&target).await?)
            });
            match dialled.await {
                Ok(Ok(stream)) => return Ok(Box::new(stream)),
                Ok(Err(e)) => refused = io::Error::other(format!("{e:#}")),
                Err(_) => refused = io::ErrorKind::TimedOut.into(),
            }
        }
        Err(refused)
    }

    /// A control plane that is cut off reaches its own API server only. Who holds the virtual address reaches the others.
    pub async fn holder_first(&self, via: &[String]) -> Vec<String> {
        let mut via = via.to_vec();
        if via.len() > 1 {
            let terms = join_all(via.iter().map(|machine| async {
                let state = timeout(LOOK, self.state(machine)).await.ok().flatten()?;
                Some(state.vip.filter(|vip| vip.holder).map(|vip| vip.term))
            }));
            let mut terms = terms.await.into_iter();
            via.sort_by_cached_key(|_| Reverse(terms.next().flatten()));
        }
        via
    }

    /// A client of the whole cluster, by the virtual address.
    pub fn client(&self, identity: &Identity, cluster: &Cluster) -> Result<kube::Client> {
        let endpoint = cluster.endpoint().context("the cluster has no control plane")?;
        self.client_at(identity, cluster, endpoint)
    }

    /// The same by another address that all control planes reach.
    pub fn client_at(&self, identity: &Identity, cluster: &Cluster, at: Ipv4Addr) -> Result<kube::Client> {
        let via = cluster.control_planes().map(|n| cluster.machine(n)).collect();
        api::client(identity, at, cluster.api_port, self.dial(via))
    }

    /// A client of one API server.
    pub fn client_of(
        &self,
        identity: &Identity,
        cluster: &Cluster,
        node: &ClusterNode,
    ) -> Result<kube::Client> {
        api::client(identity, node.ip, cluster.api_port, self.dial(vec![cluster.machine(node)]))
    }

    /// Runs a command in a node to its end.
    pub async fn run(&self, machine: &str, argv: &[String]) -> Result<Output> {
        Ok(self.node(machine).await?.run(argv, Vec::new()).await?)
    }

    /// Replaces files of a node, whether it runs or not. They are not changed in one that is frozen.
    pub async fn write(&self, home: &Home, machine: &str, files: &[NodeFile]) -> Result<()> {
        match self.node(machine).await {
            Ok(node) => Ok(node.put(files).await?),
            Err(e) if is_off(&e) => {
                files.iter().try_for_each(|file| machine::files::write(home, machine, file))
            }
            Err(e) => Err(e),
        }
        .with_context(|| format!("write files of {machine}"))
    }
}

pub fn is_off(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(NoStream::NotRunning(_)))
}

pub fn is_frozen(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(NoStream::Frozen(_)))
}
