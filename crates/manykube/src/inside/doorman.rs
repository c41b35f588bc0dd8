//! The process at a door: it hands each connection on to a node that runs, and from there to an API server that answers.
//!
//! The virtual address comes first: whoever holds it spreads over the API servers that are healthy. So the door
//! belongs to no control plane, and the loss of one is not the loss of the port. It is two processes: one does the work, the
//! other has nothing to do but to hold the door's lock and to start the first again when something ends it.

use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use drivers::docker::Address;
use drivers::docker::inside::Engine;
use model::Home;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use super::door::{Record, file, read};
use super::ways::Ways;
use crate::background;
use crate::state::profile;

/// The hidden command: `api-door HOME CACHE PROFILE`, and with this word after it the one that does the work.
pub const COMMAND: &str = "api-door";
const WORK: &str = "work";
/// Between two looks at who runs.
const LOOK: Duration = Duration::from_secs(1);
/// The same while the engine does not answer: by SSH each is a process.
const AGAIN: Duration = Duration::from_secs(5);
const ANSWER: Duration = Duration::from_secs(15);
/// Nodes that restart all at once are back before this.
const GONE: Duration = Duration::from_secs(30);
/// An engine that has not answered for so long is not waited for.
const SILENT: Duration = Duration::from_secs(600);
/// Until somebody who was here before is gone.
const HANDOVER: Duration = Duration::from_secs(5);
const BREATH: Duration = Duration::from_millis(100);
/// Clients of an API server speak first. One that only probes the port says nothing.
const SILENCE: Duration = Duration::from_secs(10);
/// At once. Each takes two descriptors, and a process usually has 1024.
const CLIENTS: usize = 400;

/// Who is at a door.
pub enum Found {
    Nobody,
    /// Somebody who has not begun to serve.
    Somebody,
    At(Record),
}

/// By the lock: whoever merely listens at the port may be a stranger.
pub fn found(home: &Home, profile: &str) -> Found {
    let lock = file(home, profile, "lock");
    let is_held = |file: File| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
    if !File::open(&lock).is_ok_and(is_held) {
        return Found::Nobody;
    }
    let served = std::fs::read(&lock).ok().and_then(|text| serde_json::from_slice(&text).ok());
    served.map_or(Found::Somebody, Found::At)
}

pub fn main(args: &[OsString]) -> ExitCode {
    let [root, _, profile] = args else {
        return background::main(args, async |home, [profile, _]| work(home, profile).await);
    };
    let (home, profile) = (Home::new(Path::new(root), None), profile.to_string_lossy());
    let Some(_lock) = take_turn(&home, &profile) else { return ExitCode::SUCCESS };
    let worker = [args, &[WORK.into()]].concat();
    background::supervise(COMMAND, &worker, || read(&home, &profile).is_some())
}

/// None when another one is at work.
fn take_turn(home: &Home, profile: &str) -> Option<File> {
    let path = file(home, profile, "lock");
    let began = Instant::now();
    while began.elapsed() < HANDOVER {
        // Opened each time: it may have been removed.
        let lock = File::options().create(true).append(true).mode(0o600).open(&path).ok()?;
        if lock.try_lock().is_ok() {
            let _ = lock.set_len(0);
            return Some(lock);
        }
        std::thread::sleep(BREATH);
    }
    None
}

async fn work(home: &Home, profile: &str) -> Result<()> {
    background::end_with_parent();
    let Some(record) = read(home, profile) else { return Ok(()) };
    let unwanted = async {
        while read(home, profile).as_ref() == Some(&record) {
            sleep(LOOK).await;
        }
    };
    tokio::select! {
        done = serve(home, profile, &record) => done,
        () = unwanted => Ok(()),
    }
}

async fn serve(home: &Home, profile: &str, record: &Record) -> Result<()> {
    let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, record.port);
    let listener = TcpListener::bind(address).await.with_context(|| format!("listen on {address}"))?;
    fs_err::write(file(home, profile, "lock"), serde_json::to_vec(record)?)?;
    let engine = tokio::select! {
        engine = find(&record.engine) => engine,
        // Who comes now is told at once that there is no way.
        () = background::take(&listener, drop) => None,
    };
    let Some(engine) = engine else { return Ok(()) };
    let ways = Arc::new(Ways::new(engine, record.home.clone(), profile.to_owned()));
    let places = Arc::new(Semaphore::new(CLIENTS));
    let hand_on = |client: TcpStream| {
        // Who comes when all are taken is told at once.
        let Ok(place) = places.clone().try_acquire_owned() else { return };
        let (ways, to) = (ways.clone(), api_servers(home, profile));
        tokio::spawn(async move {
            if speaks(&client, SILENCE).await {
                hand_on(client, ways, to).await;
            }
            drop(place);
        });
    };
    tokio::select! {
        () = background::take(&listener, hand_on) => {}
        () = watch(&ways) => {}
    }
    Ok(())
}

async fn speaks(client: &TcpStream, within: Duration) -> bool {
    matches!(timeout(within, client.peek(&mut [0])).await, Ok(Ok(1)))
}

/// It may take a while to come back; for good it may be gone, too.
async fn find(address: &Address) -> Option<Engine> {
    let began = Instant::now();
    while began.elapsed() < SILENT {
        match Engine::find(address.clone()).await {
            Ok(engine) => return Some(engine),
            Err(fault) => eprintln!("{}", fault.message),
        }
        sleep(AGAIN).await;
    }
    None
}

/// Ends when none of the cluster's nodes has run for a while, or the engine is silent.
async fn watch(ways: &Ways) {
    let mut patience = Patience::new(Instant::now());
    while !patience.is_over(Instant::now()) {
        let looked = timeout(ANSWER, ways.look()).await;
        let runs = looked.ok().and_then(Result::ok);
        patience.note(runs, Instant::now());
        sleep(if runs.is_some() { LOOK } else { AGAIN }).await;
    }
}

/// When a node was last seen to run, and when the engine last said anything.
struct Patience {
    ran: Instant,
    answered: Instant,
}

impl Patience {
    fn new(now: Instant) -> Patience {
        Patience { ran: now, answered: now }
    }

    /// Whether any node runs; none if the engine did not answer. Then it may be that they do.
    fn note(&mut self, runs: Option<bool>, now: Instant) {
        if runs.is_some() {
            self.answered = now;
        }
        if runs != Some(false) {
            self.ran = now;
        }
    }

    fn is_over(&self, now: Instant) -> bool {
        now - self.ran >= GONE || now - self.answered >= SILENT
    }
}

fn api_servers(home: &Home, profile: &str) -> Vec<SocketAddrV4> {
    let Ok(Some(file)) = profile::load(home, profile) else { return Vec::new() };
    let cluster = &file.cluster;
    let all = [cluster.vip()].into_iter().chain(cluster.control_planes().map(|node| node.ip));
    all.map(|ip| SocketAddrV4::new(ip, cluster.api_port)).collect()
}

/// Joins a connection of ours to an address of theirs.
pub async fn hand_on(client: TcpStream, ways: Arc<Ways>, to: Vec<SocketAddrV4>) {
    if let Some(connection) = ways.connect(&to).await {
        background::relay(client, connection).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_may_restart_and_engines_may_be_away() {
        let begin = Instant::now();
        let mut patience = Patience::new(begin);
        patience.note(Some(false), begin + GONE / 2);
        assert!(!patience.is_over(begin + GONE / 2) && patience.is_over(begin + GONE));
        patience.note(None, begin + GONE);
        assert!(!patience.is_over(begin + GONE + LOOK), "nobody knows whether they run");
        patience.note(None, begin + SILENT);
        assert!(patience.is_over(begin + GONE / 2 + SILENT));
        patience.note(Some(true), begin + SILENT);
        assert!(!patience.is_over(begin + SILENT + LOOK));
    }

    #[tokio::test]
    async fn who_says_nothing_is_not_waited_for() {
        use tokio::io::AsyncWriteExt as _;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (door, _) = listener.accept().await.unwrap();
        assert!(!speaks(&door, BREATH).await);
        client.write_all(b"hello").await.unwrap();
        assert!(speaks(&door, SILENCE).await);
        client.shutdown().await.unwrap();
    }

    #[test]
    fn only_who_holds_the_lock_is_at_the_door() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path(), None);
        std::fs::create_dir_all(dir.path().join("doors")).unwrap();
        assert!(matches!(found(&home, "demo"), Found::Nobody));
        let lock = take_turn(&home, "demo").unwrap();
        assert!(matches!(found(&home, "demo"), Found::Somebody));
        let engine = Address { host: "ssh://far".into(), certs: None };
        let record = Record { port: 1, engine, home: "/h".into() };
        std::fs::write(file(&home, "demo", "lock"), serde_json::to_vec(&record).unwrap()).unwrap();
        assert!(matches!(found(&home, "demo"), Found::At(served) if served == record));
        drop(lock);
        assert!(matches!(found(&home, "demo"), Found::Nobody));
    }
}
