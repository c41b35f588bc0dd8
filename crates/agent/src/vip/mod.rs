//! The virtual address of the control planes: one of them holds it, and connections to it are spread
//! over all healthy API servers.
//!
//! ```text
//!   the election's thread                            the agent's thread
//!   health ──┐                         ┌── arp          ┌── log, state
//!   socket ──┼── member ── election ───┼── socket       ├── address   (netlink)
//!   peers  ──┘             (pure)      └── told ────────┴── aftermath (balance by nftables, cut lost
//!                                                                     connections)
//! ```
//!
//! Neither etcd nor the API server is needed for it: both may be what is down, and a cluster that
//! starts needs the address before either answers.

mod address;
mod advert;
mod aftermath;
mod announce;
mod arp;
mod balance;
mod election;
mod flows;
mod health;
mod member;
mod others;
pub mod probe;
mod realtime;
mod replay;
mod server;
mod socket;

pub use arp::Arp;
pub use probe::OWN_API_MARK;

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use model::node_spec::{Election, ElectionKey, Health, Peers};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, spawn_local};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::reaper::Reaper;
use crate::state::Node;
use advert::Seal;
use aftermath::Job;
use balance::{Service, Way};
use member::{Settings, Told};
use server::Process;

const AGAIN: Duration = Duration::from_millis(500);

/// Where a member lives, and what it is told.
#[derive(Clone)]
pub struct Place {
    pub node: Rc<Node>,
    pub reaper: Reaper,
    pub link: String,
    pub peers: watch::Receiver<Peers>,
    pub key: watch::Receiver<ElectionKey>,
}

impl Place {
    fn me(&self) -> Ipv4Addr {
        self.node.spec.network.address.addr()
    }

    fn takes_part(&self) -> bool {
        let peers = self.peers.borrow();
        peers.election.is_some() && peers.control_planes.contains(&self.me())
    }

    fn control_planes(&self) -> BTreeSet<Ipv4Addr> {
        self.peers.borrow().control_planes.iter().copied().collect()
    }
}

/// Why a member stopped being one.
#[derive(Debug, PartialEq, Eq)]
enum End {
    PowerOff,
    Changed,
}

/// Until power off: takes part whenever the peers' document says that this node does. Only then is
/// the address ours to move; `network` puts it on a node that was told to have it for good.
pub async fn run(mut place: Place, elected: bool) {
    // If it was put there, the first election begins with us as its holder.
    let mut holding = !elected && place.node.spec.network.vip.is_some();
    loop {
        let election = place.peers.borrow_and_update().election.clone();
        let election = election.filter(|_| place.takes_part());
        let key = place.key.borrow_and_update().key.clone();
        if election.is_some() && key.is_empty() {
            tracing::error!("virtual address: no key for the election; 'start' on the host brings one");
        }
        let Some(election) = election.filter(|_| !key.is_empty()) else {
            tokio::select! {
                () = place.node.stop.cancelled() => return,
                changed = place.peers.changed() => if changed.is_err() { return },
                Ok(()) = place.key.changed() => {}
            }
            continue;
        };
        let held = std::mem::take(&mut holding) && place.node.spec.network.vip == Some(election.vip);
        let ended = match Attended::join(&place, election, &key, held).await {
            Ok(mut attended) => {
                let ended = attended.serve(&mut place).await;
                if !matches!(ended, Ok(End::PowerOff))
                    && let Err(e) = attended.clear(&place).await
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

/// A member in its thread, and what is done for it in this one.
struct Attended {
    election: Election,
    service: Service,
    peers: watch::Sender<BTreeSet<Ipv4Addr>>,
    /// The API server's process.
    server: watch::Sender<Option<Arc<Process>>>,
    leave: CancellationToken,
    told: mpsc::UnboundedReceiver<Told>,
    jobs: mpsc::UnboundedSender<Job>,
    /// Ends when all jobs are done: what is left to do for clients when the node goes down.
    worker: JoinHandle<()>,
}

impl Attended {
    async fn join(place: &Place, election: Election, key: &str, holding: bool) -> Result<Attended> {
        let network = &place.node.spec.network;
        let service = Service {
            vip: election.vip,
            port: election.api_port,
            me: place.me(),
            api: model::address::api_service(network.services),
        };
        address::place(election.vip).await?;
        let net = netlink::Netlink::open()?;
        let link = net.link(&place.link).await?.with_context(|| format!("there is no {}", place.link))?;
        let (peers, known_peers) = watch::channel(place.control_planes());
        let (server, known_server) = watch::channel(None);
        let (tell, told) = mpsc::unbounded_channel();
        let leave = CancellationToken::new();
        member::spawn(Settings {
            me: place.me(),
            seal: Seal::new(key, election.vip),
            election: election.clone(),
            link: place.link.clone(),
            arp: Arp::listen(link.index, net.mac(&place.link).await?)?,
            holding,
            peers: known_peers,
            server: known_server,
            leave: leave.clone(),
            told: tell,
        })?;
        let (jobs, queue) = mpsc::unbounded_channel();
        let worker = spawn_local(aftermath::work(place.reaper.clone(), service, place.link.clone(), queue));
        let attended = Attended { election, service, peers, server, leave, told, jobs, worker };
        // The member answers for it now.
        address::take_off(&place.link, attended.election.vip).await?;
        Ok(attended)
    }

    async fn serve(&mut self, place: &mut Place) -> Result<End> {
        let node = place.node.clone();
        loop {
            tokio::select! {
                () = node.stop.cancelled() => {
                    self.depart(&node).await;
                    return Ok(End::PowerOff);
                }
                changed = place.peers.changed() => {
                    changed.context("the list of peers is not followed any more")?;
                    let election = place.peers.borrow_and_update().election.clone();
                    if !place.takes_part() || election.as_ref() != Some(&self.election) {
                        self.depart(&node).await;
                        return Ok(End::Changed);
                    }
                    self.peers.send_replace(place.control_planes());
                }
                Ok(()) = place.key.changed() => {
                    self.depart(&node).await;
                    return Ok(End::Changed);
                }
                told = self.told.recv() => match told {
                    Some(Told::End(Err(why))) => return Err(why),
                    Some(Told::End(Ok(()))) | None => bail!("the election's thread has ended"),
                    Some(told) => self.listen(&node, told),
                },
            }
        }
    }

    fn listen(&self, node: &Node, told: Told) {
        match told {
            Told::Log(line) => tracing::info!("virtual address: {line}"),
            Told::Warning(line) => tracing::warn!("virtual address: {line}"),
            Told::State(state, since) => {
                let mut known = node.state.borrow_mut();
                let was_up = known.vip.as_ref().is_some_and(|vip| vip.health > Health::Down);
                if state.health > Health::Down && !was_up {
                    self.server.send_replace(Process::find(self.service.me, self.service.port).map(Arc::new));
                }
                (known.vip, known.vip_since) = (Some(state), since);
            }
            Told::Job(job) => {
                let _ = self.jobs.send(job);
            }
            Told::End(_) => {}
        }
    }

    /// Says the last words and does what they ask for.
    async fn depart(&mut self, node: &Node) {
        self.leave.cancel();
        while let Some(told) = self.told.recv().await {
            self.listen(node, told);
        }
    }

    /// Leaves nothing behind on a node that lives on.
    async fn clear(self, place: &Place) -> Result<()> {
        self.leave.cancel();
        // Commands that still run would come after us.
        drop(self.jobs);
        let _ = self.worker.await;
        place.node.state.borrow_mut().vip = None;
        balance::apply(&place.reaper, self.service, &place.link, &BTreeSet::new(), Way::default()).await?;
        address::remove(self.election.vip).await
    }
}
