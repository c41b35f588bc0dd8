//! A driver, and the channels into its nodes that run. Everything that the host wants from such a node goes by its channel.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use drivers::{Driver, NoStream, machine};
use model::Home;
use model::node_spec::{NodeFile, NodeState};
use protocol::{Node, Output};
use tokio::time::timeout;

/// An agent answers from memory; one that does not within this time is stuck.
const ANSWER: Duration = Duration::from_secs(3);

pub struct Machines {
    driver: Box<dyn Driver>,
    open: Mutex<HashMap<String, Node>>,
}

impl Deref for Machines {
    type Target = dyn Driver;

    fn deref(&self) -> &(dyn Driver + 'static) {
        &*self.driver
    }
}

impl Machines {
    pub fn new(driver: Box<dyn Driver>) -> Machines {
        Machines { driver, open: Mutex::default() }
    }

    /// The agent of a node that runs. A channel that is open is used again.
    pub async fn node(&self, machine: &str) -> Result<Node> {
        let known = self.open.lock().unwrap_or_else(PoisonError::into_inner).get(machine).cloned();
        if let Some(node) = known.filter(Node::is_open) {
            return Ok(node);
        }
        let node = Node::open(machine, self.driver.connect(machine).await?).await?;
        self.open.lock().unwrap_or_else(PoisonError::into_inner).insert(machine.to_owned(), node.clone());
        Ok(node)
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

fn is_off(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(NoStream::NotRunning(_)))
}

pub fn is_frozen(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(NoStream::Frozen(_)))
}
