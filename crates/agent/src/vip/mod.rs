//! The virtual address of the control planes: one of them holds it, the best one, and connections to
//! it are spread over all healthy API servers.
//!
//! ```text
//!   health  ──┐                        ┌── address   (netlink: take, renew, give up)
//!   socket  ──┼── member ── election ──┼── arp       (tell the network)
//!   gateway ──┤             (pure)     ├── socket    (tell the peers)
//!   peers   ──┘                        └── aftermath (balance by nftables, cut lost connections)
//! ```
//!
//! Neither etcd nor the API server is needed for it: both may be what is down, and a cluster that
//! starts needs the address before either answers.

mod address;
mod advert;
mod aftermath;
mod arp;
mod balance;
mod election;
mod flows;
mod gateway;
mod health;
mod member;
pub mod probe;
mod socket;

pub use arp::Arp;
pub use probe::OWN_API_MARK;

use std::net::Ipv4Addr;
use std::rc::Rc;
use std::time::Duration;

use model::node_spec::Peers;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::reaper::Reaper;
use crate::state::Node;
use member::{End, Member};

const AGAIN: Duration = Duration::from_millis(500);

/// Where a member lives.
#[derive(Clone)]
pub struct Place {
    pub node: Rc<Node>,
    pub reaper: Reaper,
    pub link: String,
}

impl Place {
    fn me(&self) -> Ipv4Addr {
        self.node.spec.network.address.addr()
    }
}

/// Until power off: takes part whenever the peers' document says that this node does. Only then is
/// the address ours to move; `network` puts it on a node that was told to have it for good.
pub async fn run(place: Place, mut peers: watch::Receiver<Peers>, elected: bool) {
    // If it was put there, the first election begins with us as its holder.
    let mut holding = !elected && place.node.spec.network.vip.is_some();
    loop {
        let told = peers.borrow_and_update().clone();
        let Some(election) = told.election.clone().filter(|_| member::takes_part(&told, place.me())) else {
            tokio::select! {
                () = place.node.stop.cancelled() => return,
                changed = peers.changed() => if changed.is_err() { return },
            }
            continue;
        };
        let held = std::mem::take(&mut holding) && place.node.spec.network.vip == Some(election.vip);
        let ended = match Member::join(place.clone(), election, &told, held).await {
            Ok(mut member) => {
                let ended = member.serve(&mut peers).await;
                if !matches!(ended, Ok(End::PowerOff))
                    && let Err(e) = member.clear().await
                {
                    tracing::warn!("virtual address: {e:#}");
                }
                ended
            }
            Err(e) => Err(e),
        };
        match ended {
            Ok(End::PowerOff) => return,
            Ok(End::Changed) => tracing::info!("virtual address: the election has changed"),
            Err(e) => {
                tracing::error!("virtual address: {e:#}");
                tokio::select! {
                    () = place.node.stop.cancelled() => return,
                    () = sleep(AGAIN) => {}
                }
            }
        }
    }
}
