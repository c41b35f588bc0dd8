//! What follows from a decision but must not hold up the next one: commands take their time.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::Result;
use tokio::sync::mpsc;
use tokio::task::spawn_local;
use tokio::time::sleep;

use super::balance::{self, Service, Way};
use super::flows;
use crate::reaper::Reaper;

const RETRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(200);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Job {
    /// New connections go to these, and packets that are not ours this way.
    Balance(BTreeSet<Ipv4Addr>, Way),
    /// Connections to this one are to end.
    Cut(Ipv4Addr),
    /// This node gave the address up because it is cut off or goes down.
    Lost,
}

/// In the order they come: a connection must not be cut before the rules have another place for it.
pub async fn work(reaper: Reaper, service: Service, link: String, mut jobs: mpsc::UnboundedReceiver<Job>) {
    while let Some(job) = jobs.recv().await {
        let told = format!("{job:?}");
        let done: Result<()> = match job {
            Job::Balance(backends, way) => {
                let mut done = balance::apply(&reaper, service, &link, &backends, way).await;
                // The next job may make it needless, so not for long.
                for _ in 0..RETRIES {
                    if done.is_ok() || !jobs.is_empty() {
                        break;
                    }
                    sleep(PAUSE).await;
                    done = balance::apply(&reaper, service, &link, &backends, way).await;
                }
                done
            }
            Job::Cut(backend) => {
                in_background(reaper.clone(), async move |r| flows::cut(&r, service, backend).await);
                Ok(())
            }
            Job::Lost => {
                in_background(reaper.clone(), async move |r| flows::cut_all(&r, service).await);
                Ok(())
            }
        };
        match done {
            Ok(()) => tracing::info!("virtual address: {told}"),
            Err(e) => tracing::warn!("virtual address: {told}: {e:#}"),
        }
    }
}

fn in_background(reaper: Reaper, work: impl AsyncFnOnce(Reaper) -> Result<()> + 'static) {
    spawn_local(async move {
        if let Err(e) = work(reaper).await {
            tracing::warn!("virtual address: {e:#}");
        }
    });
}
