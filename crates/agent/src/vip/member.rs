//! One control plane's part in the election: the world's events go into `election::decide`, and what
//! it says is done.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use anyhow::{Context, Result};
use model::node_spec::{Election, Health, Peers, VipState};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet, spawn_local};
use tokio::time::{Instant, sleep};

use super::address::Address;
use super::aftermath::{self, Job};
use super::arp::Arp;
use super::balance::{self, Service};
use super::election::{self, Action, DOWN, Event, State, Time};
use super::gateway::Gateway;
use super::socket::Socket;
use super::{Place, health};

/// With nobody to listen to there is nothing to hurry for.
const IDLE: Duration = Duration::from_millis(500);
/// The last words are said a few times: there will be no next ones.
const LAST_WORDS: u32 = 3;
const BETWEEN_WORDS: Duration = Duration::from_millis(15);

pub struct Member {
    place: Place,
    election: Election,
    me: Ipv4Addr,
    clock: Instant,
    state: State,
    /// When the role last changed.
    since: Time,
    address: Address,
    arp: Arp,
    gateway: Gateway,
    socket: Socket,
    jobs: mpsc::UnboundedSender<Job>,
    backends: BTreeSet<Ipv4Addr>,
    /// Control planes whose API servers were not lost at the last look.
    alive: BTreeSet<Ipv4Addr>,
    health: watch::Sender<Health>,
    /// Asking for health ends with us.
    asking: JoinSet<()>,
    /// Ends when all jobs are done: what is left to do for clients when the node goes down.
    worker: JoinHandle<()>,
}

/// Why a member stopped being one.
#[derive(Debug, PartialEq, Eq)]
pub enum End {
    PowerOff,
    Changed,
}

impl Member {
    /// `holding`: see `election::start`.
    pub async fn join(place: Place, election: Election, peers: &Peers, holding: bool) -> Result<Member> {
        let me = place.me();
        let net = netlink::Netlink::open()?;
        let link = net.link(&place.link).await?.with_context(|| format!("there is no {}", place.link))?;
        let arp = Arp::open(link.index, net.mac(&place.link).await?)?;
        let gateway = Gateway::open(place.node.spec.network.gateway)?;
        let socket = Socket::open(me, election.port, &place.link, election.vip).await?;
        let mut address = Address::new(&place.link, election.vip)?;
        if holding {
            address.take(Time::ZERO);
        } else {
            // An earlier membership may have ended without.
            address.release().await?;
        }
        let clock = Instant::now();
        let state = election::start(me, &control_planes(peers), holding, Time::ZERO);
        let (jobs, queue) = mpsc::unbounded_channel();
        let service = Service { vip: election.vip, port: election.api_port, me };
        let worker = spawn_local(aftermath::work(place.reaper.clone(), service, queue));
        let mut member = Member {
            place,
            election,
            me,
            clock,
            state,
            since: Time::ZERO,
            address,
            arp,
            gateway,
            socket,
            jobs,
            backends: BTreeSet::new(),
            alive: BTreeSet::new(),
            health: watch::Sender::new(Health::Down),
            asking: JoinSet::new(),
            worker,
        };
        member.watch_health();
        Ok(member)
    }

    /// Only where somebody could do better does it matter how well the own API server is.
    fn watch_health(&mut self) {
        if self.state.alone() || !self.asking.is_empty() {
            return;
        }
        let target = SocketAddrV4::new(self.me, self.election.api_port);
        let verdict = self.health.clone();
        self.asking.spawn_local(async move {
            if let Err(e) = health::watch(target, verdict).await {
                tracing::error!("watch the API server: {e:#}");
            }
        });
    }

    pub async fn serve(&mut self, peers: &mut watch::Receiver<Peers>) -> Result<End> {
        let node = self.place.node.clone();
        let mut health = self.health.subscribe();
        let mut last = self.now();
        self.step(Event::Tick).await?;
        loop {
            let pause = if self.state.alone() { IDLE } else { self.state.pause(self.now()) };
            let mut event = tokio::select! {
                biased;
                () = node.stop.cancelled() => {
                    self.leave().await;
                    return Ok(End::PowerOff);
                }
                changed = peers.changed() => {
                    changed.context("nobody tells of peers any more")?;
                    let now = peers.borrow_and_update().clone();
                    if !takes_part(&now, self.me) || now.election.as_ref() != Some(&self.election) {
                        self.leave().await;
                        return Ok(End::Changed);
                    }
                    self.state = election::set_peers(self.state.clone(), &control_planes(&now));
                    self.watch_health();
                    Event::Tick
                }
                heard = self.socket.receive() => {
                    let (from, advert) = heard?;
                    Event::Heard(from, advert)
                }
                _ = health.changed() => Event::Health(*health.borrow_and_update()),
                () = self.gateway.answer() => Event::Gateway,
                () = sleep(pause) => Event::Tick,
            };
            let now = self.now();
            let slept = !self.state.alone() && now.saturating_sub(last) > DOWN;
            if slept {
                tracing::warn!("virtual address: slept for {:?}", now.saturating_sub(last));
            }
            last = now;
            if slept && !self.state.is_holder() {
                // What waits in the socket tells of a world that is no more. To a holder it tells
                // whether it was replaced.
                self.socket.drain();
                if matches!(event, Event::Heard(..)) {
                    event = Event::Tick;
                }
            }
            // Silence is what is left when all was heard.
            if !matches!(event, Event::Heard(..)) {
                while let Some((from, advert)) = self.socket.waiting() {
                    self.step(Event::Heard(from, advert)).await?;
                }
            }
            self.step(event).await?;
        }
    }

    fn now(&self) -> Time {
        self.clock.elapsed()
    }

    async fn step(&mut self, event: Event) -> Result<()> {
        let now = self.now();
        if let Event::Health(health) = event {
            tracing::info!("virtual address: the API server here is {health:?}");
        }
        let (state, actions) = election::decide(self.state.clone(), event, now);
        self.state = state;
        for action in actions {
            self.perform(action, now).await;
        }
        // Not while another may have it.
        if self.state.is_sure() {
            match self.address.upkeep(now, self.state.alone()).await {
                Ok(true) => self.arp.announce(self.election.vip)?,
                Ok(false) => {}
                Err(e) => tracing::error!("virtual address: {e:#}"),
            }
        }
        self.follow_up(now);
        self.note(now);
        Ok(())
    }

    async fn perform(&mut self, action: Action, now: Time) {
        match action {
            Action::Take => {
                tracing::info!("virtual address: taken, term {}", self.state.term());
                self.since = now;
                self.address.take(now);
            }
            Action::Drop => {
                if let Err(e) = self.address.release().await {
                    tracing::error!("virtual address: {e:#}");
                }
                tracing::info!("virtual address: given up, term {}", self.state.term());
                self.since = now;
                let _ = self.jobs.send(Job::Moved);
            }
            Action::Announce => self.address.announce_again(now),
            Action::Send(advert) => self.state.peers().for_each(|peer| self.socket.send(peer, &advert)),
            Action::AskGateway => {
                // The kernel may know the gateway by an address that has gone with another node's
                // cable (a bridge borrows one of its ports'), and would believe in it for seconds.
                let _ = self.arp.ask(self.me, self.place.node.spec.network.gateway);
                self.gateway.ask();
            }
        }
    }

    fn follow_up(&mut self, now: Time) {
        let backends = if self.state.alone() { BTreeSet::new() } else { self.state.backends(now) };
        if backends != self.backends {
            self.backends.clone_from(&backends);
            let _ = self.jobs.send(Job::Balance(backends));
        }
        let members = self.state.peers().chain([self.me]);
        let alive: BTreeSet<Ipv4Addr> = members.filter(|ip| !self.state.is_lost(*ip, now)).collect();
        for lost in self.alive.difference(&alive) {
            let _ = self.jobs.send(Job::Cut(*lost));
        }
        self.alive = alive;
    }

    fn note(&self, now: Time) {
        let state = VipState {
            address: self.election.vip,
            holder: self.state.is_holder(),
            held_by: self.state.holder(now),
            health: self.state.health,
            since: now.saturating_sub(self.since).as_secs(),
            term: self.state.term(),
            backends: self.backends.iter().copied().collect(),
        };
        self.place.node.state.borrow_mut().vip = Some(state);
    }

    /// Leaves nothing behind on a node that lives on.
    pub async fn clear(mut self) -> Result<()> {
        // Commands that still run would come after us.
        drop(self.jobs);
        let _ = self.worker.await;
        self.place.node.state.borrow_mut().vip = None;
        let service = Service { vip: self.election.vip, port: self.election.api_port, me: self.me };
        balance::apply(&self.place.reaper, service, &BTreeSet::new()).await?;
        self.address.release().await
    }

    async fn leave(&mut self) {
        if let Err(e) = self.step(Event::Leave).await {
            tracing::warn!("virtual address: {e:#}");
        }
        let (_, said) = election::decide(self.state.clone(), Event::Leave, self.now());
        for word in 0..LAST_WORDS {
            if word > 0 {
                sleep(BETWEEN_WORDS).await;
            }
            for action in &said {
                self.perform(*action, self.now()).await;
            }
        }
    }
}

pub fn takes_part(peers: &Peers, me: Ipv4Addr) -> bool {
    peers.election.is_some() && peers.control_planes.contains(&me)
}

fn control_planes(peers: &Peers) -> BTreeSet<Ipv4Addr> {
    peers.control_planes.iter().copied().collect()
}
