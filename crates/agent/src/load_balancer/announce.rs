//! Addresses on this node's link that the network is told of.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use ipnet::Ipv4Net;
use netlink::Netlink;

use crate::vip::Arp;

/// Seconds until the kernel takes the addresses away from an agent that is frozen or gone.
const LIFETIME: u32 = 3;
const RENEW: Duration = Duration::from_secs(1);
/// The first announcements follow each other closely: some may be lost or come too early.
const CLOSELY: u32 = 5;
const REMIND: Duration = Duration::from_secs(2);

pub struct Announcer {
    link: String,
    held: BTreeMap<Ipv4Addr, Held>,
}

struct Held {
    renew: Instant,
    announced: u32,
    announce: Instant,
}

impl Announcer {
    pub fn new(link: String) -> Announcer {
        Announcer { link, held: BTreeMap::new() }
    }

    /// Has these addresses and no others; called again and again.
    pub async fn keep(&mut self, wanted: &BTreeSet<Ipv4Addr>) {
        if wanted.is_empty() && self.held.is_empty() {
            return;
        }
        if let Err(e) = self.reconcile(wanted).await {
            tracing::warn!("load balancer: {e:#}");
        }
    }

    async fn reconcile(&mut self, wanted: &BTreeSet<Ipv4Addr>) -> Result<()> {
        let now = Instant::now();
        let net = Netlink::open()?;
        let link = net.link(&self.link).await?.with_context(|| format!("there is no {}", self.link))?.index;
        for gone in self.held.keys().copied().filter(|ip| !wanted.contains(ip)).collect::<Vec<_>>() {
            self.held.remove(&gone);
            net.remove_address(link, Ipv4Net::from(gone)).await?;
            tracing::info!("load balancer: {gone} is not here any more");
        }
        let mut arp = None;
        for ip in wanted {
            let held = self.held.entry(*ip).or_insert_with(|| {
                tracing::info!("load balancer: {ip} is here");
                Held { renew: now, announced: 0, announce: now }
            });
            if now >= held.renew {
                net.hold_address(link, Ipv4Net::from(*ip), Some(LIFETIME)).await?;
                held.renew = now + RENEW;
            }
            if now >= held.announce {
                if arp.is_none() {
                    arp = Some(Arp::open(link, net.mac(&self.link).await?)?);
                }
                arp.iter().try_for_each(|arp| arp.announce(*ip))?;
                held.announced += 1;
                held.announce = if held.announced < CLOSELY { now } else { now + REMIND };
            }
        }
        Ok(())
    }
}
