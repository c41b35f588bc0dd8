//! One control plane's part in the election: the world's events go into `election::decide`, and what
//! it says is done.
//!
//! It has a thread of its own, because the agent's may have to wait for many seconds, for example for
//! the kernel's lock on links while those of many pods come and go. So nothing here speaks rtnetlink,
//! starts a program or opens a file, and what has to be logged or done by others is only told.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use model::node_spec::{Election, Health, VipState};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinSet, LocalSet};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::advert::Seal;
use super::aftermath::Job;
use super::announce::Announcements;
use super::arp::Arp;
use super::balance::Way;
use super::election::{self, Action, DOWN, Event, State, Time, Why};
use super::health::{self, Server};
use super::server::Process;
use super::socket::Socket;

/// With no peer to listen to there is nothing to hurry for.
const IDLE: Duration = Duration::from_millis(250);
/// The last words are said a few times: there will be no next ones.
const LAST_WORDS: u32 = 3;
const BETWEEN_WORDS: Duration = Duration::from_millis(15);

/// What a member is told, once and while it takes part.
pub struct Settings {
    pub me: Ipv4Addr,
    pub election: Election,
    pub seal: Seal,
    pub link: String,
    pub arp: Arp,
    /// See `election::start`.
    pub holding: bool,
    pub peers: watch::Receiver<BTreeSet<Ipv4Addr>>,
    /// The API server's process.
    pub server: watch::Receiver<Option<Arc<Process>>>,
    pub leave: CancellationToken,
    pub told: mpsc::UnboundedSender<Told>,
}

/// What a member tells.
pub enum Told {
    State(VipState, Instant),
    Log(String),
    Warning(String),
    Job(Job),
    /// The last one.
    End(Result<()>),
}

pub fn spawn(settings: Settings) -> Result<()> {
    let run = move || {
        super::realtime::request();
        let told = settings.told.clone();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let ended = match runtime {
            Ok(runtime) => LocalSet::new().block_on(&runtime, take_part(settings)),
            Err(e) => Err(e.into()),
        };
        let _ = told.send(Told::End(ended));
    };
    std::thread::Builder::new().name("election".to_owned()).spawn(run).context("start a thread").map(drop)
}

/// Until it is told to leave.
async fn take_part(settings: Settings) -> Result<()> {
    let Settings { me, election, seal, link, arp, holding, peers, server, leave, told } = settings;
    let socket = Socket::open(me, election.port, &link, seal).await?;
    let state = election::start(me, &peers.borrow(), holding, Time::ZERO);
    let clock = Instant::now();
    // SAFETY: the descriptor is owned by `arp`, which has the same one until it is dropped.
    let arp = unsafe { AsyncFd::register_with_interest(arp, Interest::READABLE) };
    let mut member = Member {
        state,
        me,
        clock,
        since: clock,
        announcements: holding.then(|| Announcements::begin(Time::ZERO)),
        arp: arp.map_err(|e| e.into_parts().1).context("watch the ARP socket")?,
        socket,
        backends: BTreeSet::new(),
        way: Way::default(),
        alive: BTreeSet::new(),
        shown: None,
        election,
        told,
    };
    member.serve(peers, server, leave).await
}

struct Member {
    state: State,
    me: Ipv4Addr,
    election: Election,
    clock: Instant,
    /// When the role last changed.
    since: Instant,
    /// While this node holds the address.
    announcements: Option<Announcements>,
    arp: AsyncFd<Arp>,
    socket: Socket,
    backends: BTreeSet<Ipv4Addr>,
    way: Way,
    /// Control planes whose API servers were not lost at the last look.
    alive: BTreeSet<Ipv4Addr>,
    shown: Option<VipState>,
    told: mpsc::UnboundedSender<Told>,
}

impl Member {
    async fn serve(
        &mut self,
        mut peers: watch::Receiver<BTreeSet<Ipv4Addr>>,
        server: watch::Receiver<Option<Arc<Process>>>,
        leave: CancellationToken,
    ) -> Result<()> {
        let (mut health, _asking) = self.watch_health(server);
        let mut last = self.now();
        self.step(Event::Tick);
        loop {
            let event = tokio::select! {
                biased;
                () = leave.cancelled() => {
                    self.last_words().await;
                    return Ok(());
                }
                changed = peers.changed() => {
                    changed.context("the agent has gone")?;
                    Event::Peers(peers.borrow_and_update().clone())
                }
                heard = self.socket.receive() => heard?,
                ready = self.arp.readable() => {
                    let mut ready = ready.context("wait for ARP")?;
                    ready.clear_ready();
                    Event::Tick
                }
                _ = health.changed() => Event::Health(*health.borrow_and_update()),
                () = sleep(self.pause()) => Event::Tick,
            };
            let slept = self.now().saturating_sub(last);
            if slept > DOWN {
                self.tell(Told::Warning(format!("stood still for {slept:?}")));
            }
            last = self.now();
            // Silence is what is left when all was heard.
            if !matches!(event, Event::Heard(..) | Event::Noise(_)) {
                while let Some(heard) = self.socket.waiting() {
                    self.step(heard);
                }
            }
            self.step(event);
        }
    }

    /// Asking ends with what is returned.
    fn watch_health(
        &self,
        process: watch::Receiver<Option<Arc<Process>>>,
    ) -> (watch::Receiver<Health>, JoinSet<()>) {
        let (verdict, health) = watch::channel(Health::Down);
        let server = Server { target: SocketAddrV4::new(self.me, self.election.api_port), process };
        let told = self.told.clone();
        let mut asking = JoinSet::new();
        asking.spawn_local(async move {
            let log = |line| drop(told.send(Told::Log(line)));
            if let Err(e) = health::watch(&server, &verdict, &log).await {
                let _ = told.send(Told::Warning(format!("watch the API server: {e:#}")));
            }
            // Without an answer nothing changes any more.
            std::future::pending::<()>().await;
        });
        (health, asking)
    }

    fn pause(&self) -> Duration {
        let next = if self.state.alone() { IDLE } else { self.state.pause() };
        next.min(self.announcements.as_ref().map_or(IDLE, |a| a.pause(self.now())))
    }

    fn now(&self) -> Time {
        self.clock.elapsed()
    }

    fn step(&mut self, event: Event) {
        if let Event::Health(health) = event {
            self.tell(Told::Log(format!("the API server here is {health:?}")));
        }
        let (state, actions) = election::decide(self.state.clone(), event, self.now());
        self.state = state;
        actions.into_iter().for_each(|action| self.perform(action));
        // Not while another may have it.
        if self.state.is_sure() {
            self.arp.get_ref().answer(self.state.is_holder().then_some(self.election.vip));
            self.announce();
        }
        self.follow_up();
        self.show();
    }

    fn announce(&mut self) {
        let now = self.now();
        if self.announcements.as_mut().is_some_and(|a| a.is_due(now))
            && let Err(e) = self.arp.get_ref().announce(self.election.vip)
        {
            self.tell(Told::Warning(format!("{e:#}")));
        }
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::Take => {
                self.tell(Told::Log(format!("taken, term {}", self.state.term())));
                self.since = Instant::now();
                self.announcements = Some(Announcements::begin(self.now()));
            }
            Action::Drop(why) => {
                self.tell(Told::Log(format!("given up, term {}: {why:?}", self.state.term())));
                self.since = Instant::now();
                self.announcements = None;
                if why == Why::Lost {
                    self.tell(Told::Job(Job::Lost));
                }
            }
            Action::Announce => self.announcements = Some(Announcements::begin(self.now())),
            Action::Send(advert) => self.socket.send(self.state.peers(), &advert),
        }
    }

    fn follow_up(&mut self) {
        let alone = self.state.alone();
        let backends = if alone { BTreeSet::new() } else { self.state.backends() };
        let elsewhere = self.state.holder().filter(|ip| *ip != self.me);
        let way = Way { holder: elsewhere, former: self.state.former() };
        if backends != self.backends || way != self.way {
            self.backends.clone_from(&backends);
            self.way = way;
            self.tell(Told::Job(Job::Balance(backends, way)));
        }
        let members = self.state.peers().chain([self.me]);
        let alive: BTreeSet<Ipv4Addr> = members.filter(|ip| !self.state.is_lost(*ip)).collect();
        for lost in self.alive.difference(&alive) {
            self.tell(Told::Job(Job::Cut(*lost)));
        }
        self.alive = alive;
    }

    fn show(&mut self) {
        let state = VipState {
            address: self.election.vip,
            holder: self.state.is_holder(),
            held_by: self.state.holder(),
            health: self.state.health,
            since: 0,
            term: self.state.term(),
            backends: self.backends.iter().copied().collect(),
        };
        if self.shown.as_ref() != Some(&state) {
            self.shown = Some(state.clone());
            self.tell(Told::State(state, self.since));
        }
    }

    fn tell(&self, what: Told) {
        // If the agent has gone, so have we soon.
        let _ = self.told.send(what);
    }

    async fn last_words(&mut self) {
        self.step(Event::Leave);
        for _ in 1..LAST_WORDS {
            sleep(BETWEEN_WORDS).await;
            self.step(Event::Leave);
        }
    }
}
