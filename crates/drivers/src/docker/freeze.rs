//! The engine stops the processes of a container and lets them go on.

use anyhow::{Context, Result};
use async_trait::async_trait;

use super::{Docker, container};
use crate::freeze::Freeze;

#[async_trait]
impl Freeze for Docker {
    async fn freeze(&self, machine: &str) -> Result<()> {
        let client = self.client().await?;
        let found = container::inspect(client, machine).await?;
        let found = found.with_context(|| format!("there is no container {machine}"))?;
        let frozen = client.pause_container(container::id(&found)?).await;
        frozen.with_context(|| format!("pause the container {machine}"))
    }

    async fn thaw(&self, machine: &str) -> Result<()> {
        let client = self.client().await?;
        match container::inspect(client, machine).await? {
            Some(found) if container::is_paused(&found) => client
                .unpause_container(container::id(&found)?)
                .await
                .with_context(|| format!("let the container {machine} go on")),
            _ => Ok(()),
        }
    }
}
