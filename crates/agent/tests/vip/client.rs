//! Clients of the virtual address.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use agent::component::Probe;
use anyhow::{Context, Result};
use tokio::task::{JoinHandle, spawn_local};
use tokio::time::{sleep, timeout};

use crate::api::PORT;

/// For those who measure: longer than an answer takes, short enough not to blur the measure.
pub const SHORT: Duration = Duration::from_millis(300);
/// For those who only want to know.
const LONG: Duration = Duration::from_secs(3);
const EVERY: Duration = Duration::from_millis(20);

/// Who answers to a new connection.
pub async fn who(vip: Ipv4Addr) -> Result<Ipv4Addr> {
    who_soon(vip, LONG).await
}

async fn who_soon(vip: Ipv4Addr, patience: Duration) -> Result<Ipv4Addr> {
    let mut probe = Probe::new(SocketAddrV4::new(vip, PORT))?;
    timeout(patience, answer(&mut probe)).await.context("no answer")?
}

/// The part `client`: who answered, one line for each connection.
pub fn print(vip: &str, count: &str) -> Result<()> {
    let (vip, count): (Ipv4Addr, u32) = (vip.parse()?, count.parse()?);
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        for _ in 0..count {
            println!("{}", who(vip).await?);
        }
        Ok(())
    })
}

/// Asks all the time and remembers when it was answered. In a thread of its own, because the test
/// runs commands and waits for them.
pub struct Watcher {
    seen: Arc<Mutex<Seen>>,
    stop: Arc<AtomicBool>,
}

#[derive(Default)]
struct Seen {
    answered: Vec<Instant>,
    /// When those were asked that got no answer.
    failed: Vec<Instant>,
}

impl Watcher {
    pub fn start(vip: Ipv4Addr) -> Watcher {
        let (seen, stop) = (Arc::<Mutex<Seen>>::default(), Arc::<AtomicBool>::default());
        let watcher = Watcher { seen: seen.clone(), stop: stop.clone() };
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async {
                while !stop.load(Ordering::Relaxed) {
                    // Overlapping, so that one that waits in vain does not delay the next.
                    tokio::spawn(ask(vip, seen.clone()));
                    sleep(EVERY).await;
                }
            });
        });
        watcher
    }

    /// How long after `from` clients were still disappointed: asked at that time, and not answered.
    pub fn disturbed(&self, from: Instant) -> Duration {
        let last = self.seen.lock().expect("no panic").failed.iter().copied().max();
        last.map_or(Duration::ZERO, |last| last.saturating_duration_since(from))
    }

    /// The longest time without an answer since `from`, until now.
    pub fn longest_gap(&self, from: Instant) -> Duration {
        let mut last = from;
        let mut longest = Duration::ZERO;
        let answered = &self.seen.lock().expect("no panic").answered;
        for at in answered.iter().copied().filter(|at| *at > from).chain([Instant::now()]) {
            longest = longest.max(at.saturating_duration_since(last));
            last = last.max(at);
        }
        longest
    }
}

async fn ask(vip: Ipv4Addr, seen: Arc<Mutex<Seen>>) {
    let asked = Instant::now();
    let answer = who_soon(vip, SHORT).await;
    let mut seen = seen.lock().expect("no panic");
    match answer {
        Ok(_) => seen.answered.push(Instant::now()),
        Err(_) => seen.failed.push(asked),
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Connections that wait for an answer that never comes. How long until each is ended?
pub fn wait_forever(vip: Ipv4Addr, count: usize) -> Vec<JoinHandle<Instant>> {
    let one = || async move {
        let mut probe = Probe::new(SocketAddrV4::new(vip, PORT)).expect("TLS");
        let _ = probe.get("/never").await;
        Instant::now()
    };
    std::iter::repeat_with(|| spawn_local(one())).take(count).collect()
}

/// Until the server has done its work.
pub async fn keep_busy(server: Ipv4Addr) -> Result<()> {
    Probe::new(SocketAddrV4::new(server, PORT))?.get("/busy").await.map(drop)
}

/// Connections that are kept, and who answered on each.
pub struct Kept(Vec<(Probe, Ipv4Addr)>);

impl Kept {
    pub async fn open(vip: Ipv4Addr, count: usize) -> Result<Kept> {
        let mut all = Vec::new();
        for _ in 0..count {
            let mut probe = Probe::new(SocketAddrV4::new(vip, PORT))?;
            let who = answer(&mut probe).await?;
            all.push((probe, who));
        }
        Ok(Kept(all))
    }

    /// Of those to others than `but`: how many are answered by the same one. A connection that broke is
    /// made again and finds the next one.
    pub async fn ask_again(&mut self, but: Ipv4Addr) -> (usize, usize) {
        let (mut lived, mut of) = (0, 0);
        for (probe, before) in self.0.iter_mut().filter(|(_, who)| *who != but) {
            of += 1;
            lived += usize::from(is_answered_by(probe, *before).await);
        }
        (lived, of)
    }
}

async fn is_answered_by(probe: &mut Probe, who: Ipv4Addr) -> bool {
    matches!(timeout(LONG, answer(probe)).await, Ok(Ok(answered)) if answered == who)
}

async fn answer(probe: &mut Probe) -> Result<Ipv4Addr> {
    let (_, body) = probe.get("/who").await?;
    Ok(String::from_utf8(body)?.parse()?)
}
