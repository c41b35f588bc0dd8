//! Writes what was given into the services, beside what keeps the addresses: those last three seconds, and an API that hangs
//! may take longer to answer.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::services::Services;

/// An address that could not be written into a Service is tried again.
const AGAIN: Duration = Duration::from_secs(1);

pub struct Teller {
    services: Services,
    /// One at a time; what it says is whether all went well.
    at_work: JoinSet<bool>,
    not_before: Instant,
}

impl Teller {
    pub fn new(services: Services) -> Teller {
        Teller { services, at_work: JoinSet::new(), not_before: Instant::now() }
    }

    /// Begins, and does not wait for the end. What is left is asked for again with the next call.
    pub fn tell<'a>(&mut self, all: impl Iterator<Item = (&'a str, Option<Ipv4Addr>)>) {
        while let Some(done) = self.at_work.try_join_next() {
            if !done.unwrap_or(false) {
                self.not_before = Instant::now() + AGAIN;
            }
        }
        let all: Vec<_> = all.map(|(service, ip)| (service.to_owned(), ip)).collect();
        if all.is_empty() || !self.at_work.is_empty() || Instant::now() < self.not_before {
            return;
        }
        self.at_work.spawn_local(tell(self.services.clone(), all));
    }
}

async fn tell(services: Services, all: Vec<(String, Option<Ipv4Addr>)>) -> bool {
    let mut well = true;
    for (service, ip) in all {
        match services.tell(&service, ip).await {
            Ok(()) => tracing::info!("load balancer: {service} has {}", shown(ip)),
            Err(e) => {
                tracing::warn!("load balancer: {service}: {e:#}");
                well = false;
            }
        }
    }
    well
}

fn shown(ip: Option<Ipv4Addr>) -> String {
    ip.map_or_else(
        || "no address: all are given out, or another one was asked for".to_owned(),
        |ip| ip.to_string(),
    )
}
