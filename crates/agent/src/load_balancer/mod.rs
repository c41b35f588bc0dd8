//! Services of type LoadBalancer get an address of the node network, which the host reaches directly.
//!
//! ```text
//!   services (API: list and watch) ──> pool (pure) ──> API: the Service's status
//!                                        └──────────> announce (netlink, ARP)
//! ```
//!
//! Every control plane knows all services at all times; the one that has the virtual address gives out
//! and announces. So there is one at a time, and when it dies the next one has nothing to ask first:
//! what was given to whom stands in the services themselves. From there on kube-proxy does the rest.

mod announce;
mod pool;
mod services;
mod tell;

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::time::Duration;

use model::node_spec::Peers;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::state::{Node, is_local};
use announce::Announcer;
use services::{Known, Services};
use tell::Teller;

/// How fast a new holder notices that it is one.
const TICK: Duration = Duration::from_millis(200);

/// Until power off, on control planes.
pub async fn run(node: Rc<Node>, link: String, peers: watch::Receiver<Peers>) {
    let Some(api) = node.spec.network.api.filter(|_| node.spec.control_plane) else { return };
    let mut watching = JoinSet::new();
    let (sender, mut known) = watch::channel(None);
    let services = Services::new(api);
    watching.spawn_local({
        let services = services.clone();
        async move { services.follow(sender).await }
    });
    let mut announcer = Announcer::new(link);
    let mut teller = Teller::new(services.clone());
    loop {
        tokio::select! {
            () = node.stop.cancelled() => break,
            () = sleep(TICK) => {}
            changed = known.changed() => if changed.is_err() { break },
        }
        let seen: Option<Known> = known.borrow_and_update().clone();
        // Before the API was heard of, nothing is known: neither to give nor to take away.
        let Some(seen) = seen else { continue };
        if !holds(&node, *api.ip()) {
            announcer.keep(&BTreeSet::new()).await;
            continue;
        }
        let addresses = pool::addresses(node.spec.network.address.trunc(), &peers.borrow());
        let given = pool::give(&seen.wanted(), &addresses);
        announcer.keep(&given.values().copied().collect()).await;
        teller.tell(seen.to_tell(&given));
    }
    // The next one can have them at once.
    announcer.keep(&BTreeSet::new()).await;
}

/// Where there is an election it knows best; else the kernel knows where somebody else put the address.
fn holds(node: &Node, vip: Ipv4Addr) -> bool {
    let elected = node.state.borrow().vip.as_ref().map(|v| v.holder);
    elected.unwrap_or_else(|| is_local(vip))
}
