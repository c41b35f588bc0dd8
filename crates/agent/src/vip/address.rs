//! The virtual address on this node's link.

use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::{Context, Result};
use ipnet::Ipv4Net;
use netlink::Netlink;

use super::election::Time;

/// Seconds until the kernel takes the address away from an agent that is frozen or gone: nobody
/// else can, and the next holder has it long since.
const LIFETIME: u32 = 3;
const RENEW: Duration = Duration::from_secs(1);
const RETRY: Duration = Duration::from_millis(200);
/// Announcements after taking the address, from then on; some may be lost or come too early.
const ANNOUNCE: [Duration; 5] = [
    Duration::ZERO,
    Duration::from_millis(40),
    Duration::from_millis(150),
    Duration::from_millis(400),
    Duration::from_millis(1000),
];
/// And later, for whoever has heard of the address from a node that did not know better.
const REMIND: Duration = Duration::from_secs(2);

pub struct Address {
    net: Netlink,
    link: String,
    vip: Ipv4Net,
    held: Option<Held>,
}

struct Held {
    since: Time,
    announced: usize,
    announce: Time,
    renew: Time,
    /// As it was last set: an address of one node alone stays until it is removed.
    forever: bool,
}

impl Address {
    pub fn new(link: &str, vip: Ipv4Addr) -> Result<Address> {
        Ok(Address { net: Netlink::open()?, link: link.to_owned(), vip: vip.into(), held: None })
    }

    pub fn take(&mut self, now: Time) {
        self.held = Some(Held { since: now, announced: 0, announce: now, renew: now, forever: false });
    }

    pub async fn release(&mut self) -> Result<()> {
        self.held = None;
        self.net.remove_address(self.index().await?, self.vip).await
    }

    pub fn announce_again(&mut self, now: Time) {
        if let Some(held) = &mut self.held {
            (held.since, held.announced, held.announce) = (now, 0, now);
        }
    }

    /// Does what is due; whether the address is to be announced now.
    pub async fn upkeep(&mut self, now: Time, alone: bool) -> Result<bool> {
        let Some(held) = &self.held else { return Ok(false) };
        if now >= held.renew && !(alone && held.forever) || alone != held.forever {
            let lifetime = (!alone).then_some(LIFETIME);
            let done = match self.index().await {
                Ok(index) => self.net.hold_address(index, self.vip, lifetime).await,
                Err(e) => Err(e),
            };
            let Some(held) = &mut self.held else { return Ok(false) };
            held.renew = now + if done.is_ok() { RENEW } else { RETRY };
            held.forever = alone && done.is_ok();
            done?;
        }
        Ok(self.held.as_mut().is_some_and(|held| held.announcement_due(now, alone)))
    }

    async fn index(&self) -> Result<u32> {
        let link = self.net.link(&self.link).await?;
        Ok(link.with_context(|| format!("there is no {}", self.link))?.index)
    }
}

impl Held {
    fn announcement_due(&mut self, now: Time, alone: bool) -> bool {
        if now < self.announce {
            return false;
        }
        self.announced += 1;
        self.announce = match ANNOUNCE.get(self.announced) {
            Some(after) => self.since + *after,
            // Nobody else could have claimed it.
            None if alone => Time::MAX,
            None => now + REMIND,
        };
        true
    }
}
