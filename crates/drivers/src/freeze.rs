//! Machines that stand still: an ability that a driver may have. What else can be done to a node on purpose its agent
//! does, and a loss of power is `Driver::power_off` without grace.

use anyhow::Result;
use async_trait::async_trait;

#[async_trait]
pub trait Freeze: Send + Sync {
    /// All processes of the machine stand still until `thaw`. It can be powered off and removed all the same.
    async fn freeze(&self, machine: &str) -> Result<()>;

    /// One that is not frozen goes on.
    async fn thaw(&self, machine: &str) -> Result<()>;
}
