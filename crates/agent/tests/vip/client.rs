//! Clients of the virtual address.

use std::cell::RefCell;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::rc::Rc;
use std::time::{Duration, Instant};

use agent::component::Probe;
use anyhow::{Context, Result};
use tokio::task::{JoinHandle, spawn_local};
use tokio::time::{sleep, timeout};

use crate::api::PORT;

/// Longer than any answer takes, short enough not to blur the measure.
const PATIENCE: Duration = Duration::from_millis(200);
const EVERY: Duration = Duration::from_millis(20);

/// Who answers to a new connection.
pub async fn who(vip: Ipv4Addr) -> Result<Ipv4Addr> {
    let mut probe = Probe::new(SocketAddrV4::new(vip, PORT))?;
    let (_, body) = timeout(PATIENCE, probe.get("/who")).await.context("no answer")??;
    Ok(String::from_utf8(body)?.parse()?)
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

/// Asks all the time and remembers when it was answered.
pub struct Watcher {
    answered: Rc<RefCell<Vec<Instant>>>,
    /// When those were asked that got no answer.
    failed: Rc<RefCell<Vec<Instant>>>,
    task: JoinHandle<()>,
}

impl Watcher {
    pub fn start(vip: Ipv4Addr) -> Watcher {
        let answered: Rc<RefCell<Vec<Instant>>> = Rc::default();
        let failed: Rc<RefCell<Vec<Instant>>> = Rc::default();
        let (noted, missed) = (answered.clone(), failed.clone());
        let task = spawn_local(async move {
            loop {
                // Overlapping, so that one that waits in vain does not delay the next.
                let (noted, missed) = (noted.clone(), missed.clone());
                spawn_local(async move {
                    let asked = Instant::now();
                    match who(vip).await {
                        Ok(_) => noted.borrow_mut().push(Instant::now()),
                        Err(_) => missed.borrow_mut().push(asked),
                    }
                });
                sleep(EVERY).await;
            }
        });
        Watcher { answered, failed, task }
    }

    /// How long after `from` clients were still disappointed: asked at that time, and not answered.
    pub fn disturbed(&self, from: Instant) -> Duration {
        let last = self.failed.borrow().iter().copied().max();
        last.map_or(Duration::ZERO, |last| last.saturating_duration_since(from))
    }

    /// The longest time without an answer since `from`, until now.
    pub fn longest_gap(&self, from: Instant) -> Duration {
        let mut last = from;
        let mut longest = Duration::ZERO;
        for at in self.answered.borrow().iter().copied().filter(|at| *at > from).chain([Instant::now()]) {
            longest = longest.max(at.saturating_duration_since(last));
            last = last.max(at);
        }
        longest
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.task.abort();
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
