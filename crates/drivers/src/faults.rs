//! What can be done to machines to see what their cluster does about it: an ability that a driver may
//! have. (A loss of power is `Driver::power_off` without grace, which every driver has.)

use anyhow::Result;
use async_trait::async_trait;
use model::injected::Slowness;

#[async_trait]
pub trait Faults: Send + Sync {
    /// All processes of the machine stand still until `thaw`. It can be powered off and removed all the same.
    async fn freeze(&self, machine: &str) -> Result<()>;

    async fn thaw(&self, machine: &str) -> Result<()>;

    /// From now on these packets of the profile's network are lost, and no others.
    async fn lose(&self, profile: &str, losses: &[Loss]) -> Result<()>;

    /// Holds packets from and to the machine back; `None` ends that.
    async fn delay(&self, machine: &str, slowness: Option<Slowness>) -> Result<()>;

    /// Programs that run in the machine, by the name they were called by.
    async fn programs(&self, machine: &str) -> Result<Vec<String>>;

    /// Kills all processes of a program; how many those were.
    async fn kill_program(&self, machine: &str, program: &str) -> Result<usize>;
}

/// Packets of a machine that get lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Loss {
    /// All.
    Of(String),
    /// Between two machines.
    Between(String, String),
    /// So many of `LOSS_OF`.
    Some(String, u16),
}
