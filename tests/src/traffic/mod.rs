//! Clients of the virtual address that never rest: one reads and one writes every 50 ms (TRAFFIC_MS), each time
//! on a new connection, and one reads on a connection that it keeps.
//!
//! Questions on new connections overlap, so that one that waits in vain does not delay the next:
//! what is measured is the time in which nobody is served, not a client's patience. Every write
//! makes an object of its own, and is never tried again: an object that was acknowledged and is not
//! in the list at the end was lost.

mod connection;
mod record;

use std::collections::BTreeSet;
use std::net::SocketAddrV4;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::{Lab, eventually};
use connection::{Connection, Endpoint};
pub use record::{Disturbance, KINDS, Kind, percentile};
use record::{Record, Request};

/// A machine that boots others is slow: who is served late is served.
const PATIENCE: Duration = Duration::from_secs(2);
/// Only a cluster that never serves again takes this long.
const CALM: Duration = Duration::from_secs(240);
const NAMESPACE: &str = "ledger";
/// What is read.
const OBJECT: &str = "kube-root-ca.crt";

pub struct Traffic {
    record: Arc<Mutex<Record>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Traffic {
    /// Of a cluster that runs; from the calling thread's network namespace, which is the host's.
    pub fn start(lab: &Lab, address: &str) -> Traffic {
        lab.kubectl(&["create", "namespace", NAMESPACE]).ok();
        eventually("something to read", PATIENCE * 10, || {
            let ran = lab.kubectl(&["-n", NAMESPACE, "get", "configmap", OBJECT]);
            if ran.code == 0 { Ok(()) } else { Err(ran.stderr) }
        });
        let endpoint = endpoint(lab, address.parse().expect("an address and a port"));
        let (record, stop) = (Arc::<Mutex<Record>>::default(), Arc::<AtomicBool>::default());
        let (theirs, until) = (record.clone(), stop.clone());
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(run(endpoint, theirs, until));
        });
        let traffic = Traffic { record, stop, thread: Some(thread) };
        traffic.calm(Duration::from_secs(1));
        traffic
    }

    pub fn disturbance(&self, kind: Kind, from: Instant) -> Disturbance {
        self.record().disturbance(kind, from, Instant::now())
    }

    /// Why requests since then failed.
    pub fn reasons(&self, from: Instant) -> Vec<(String, usize)> {
        self.record().reasons(from, Instant::now())
    }

    /// Waits until everybody was served for so long.
    #[track_caller]
    pub fn calm(&self, time: Duration) {
        let began = Instant::now();
        eventually("clients are served", CALM, || {
            let from = Instant::now().checked_sub(time).unwrap_or(began).max(began);
            let times = time.as_millis() / every().as_millis() / 3;
            self.record().calm(from, usize::try_from(times).unwrap_or(1))
        });
    }

    /// Ends, and panics if an object is not there that was acknowledged. How many those are.
    #[track_caller]
    pub fn nothing_is_lost(mut self, lab: &Lab) -> usize {
        self.end();
        let acknowledged = self.record().acknowledged.clone();
        let list = eventually("the list of all objects", Duration::from_secs(60), || {
            let ran = lab.kubectl(&["-n", NAMESPACE, "get", "configmaps", "-o", "name"]);
            if ran.code == 0 { Ok(ran.stdout) } else { Err(ran.stderr) }
        });
        let there: BTreeSet<&str> = list.lines().collect();
        let is_lost = |n: &&u64| !there.contains(format!("configmap/{}", name(**n)).as_str());
        let lost: Vec<&u64> = acknowledged.iter().filter(is_lost).collect();
        assert!(
            lost.is_empty(),
            "{} of {} acknowledged writes are lost: {lost:?}",
            lost.len(),
            acknowledged.len()
        );
        acknowledged.len()
    }

    fn record(&self) -> std::sync::MutexGuard<'_, Record> {
        self.record.lock().expect("no client panicked")
    }

    fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.end();
    }
}

/// Who only wants to see that nothing is lost asks less often: each new connection costs the API servers what a pod's
/// start does.
fn every() -> Duration {
    Duration::from_millis(u64::try_from(crate::rounds("TRAFFIC_MS", 50)).unwrap_or(50).max(1))
}

/// As the administrator of the kubeconfig, whatever address that names.
fn endpoint(lab: &Lab, address: SocketAddrV4) -> Endpoint {
    let config = lab.kubectl(&["config", "view", "--raw", "--minify", "-o", "json"]).ok().json();
    let file = |value: &serde_json::Value| PathBuf::from(value.as_str().expect("a file of the kubeconfig"));
    let user = &config["users"][0]["user"];
    let authority = file(&config["clusters"][0]["cluster"]["certificate-authority"]);
    let made =
        Endpoint::new(address, &authority, &file(&user["client-certificate"]), &file(&user["client-key"]));
    made.expect("an administrator")
}

fn name(number: u64) -> String {
    format!("w-{number:06}")
}

/// Until told to stop; what was asked by then is waited for.
async fn run(endpoint: Endpoint, record: Arc<Mutex<Record>>, stop: Arc<AtomicBool>) {
    let kept = tokio::spawn(keep_reading(endpoint.clone(), record.clone(), stop.clone()));
    let mut pace = interval(every());
    pace.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut open = tokio::task::JoinSet::new();
    let mut number = 0;
    while !stop.load(Ordering::Relaxed) {
        pace.tick().await;
        number += 1;
        open.spawn(read(endpoint.clone(), record.clone()));
        open.spawn(write(endpoint.clone(), record.clone(), number));
        while open.try_join_next().is_some() {}
    }
    while open.join_next().await.is_some() {}
    let _ = kept.await;
}

async fn read(endpoint: Endpoint, record: Arc<Mutex<Record>>) {
    let asked = Instant::now();
    let done = in_time(get(&endpoint, None)).await;
    note(&record, Kind::Read, asked, done.map(drop));
}

async fn keep_reading(endpoint: Endpoint, record: Arc<Mutex<Record>>, stop: Arc<AtomicBool>) {
    let mut pace = interval(every());
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut kept = None;
    while !stop.load(Ordering::Relaxed) {
        pace.tick().await;
        let asked = Instant::now();
        let done = in_time(get(&endpoint, kept.take())).await;
        note(&record, Kind::Kept, asked, done.map(|connection| kept = connection));
    }
}

async fn get(endpoint: &Endpoint, kept: Option<Connection>) -> Result<Option<Connection>> {
    let connection = match kept {
        Some(kept) => kept,
        None => endpoint.connect().await?,
    };
    let path = format!("/api/v1/namespaces/{NAMESPACE}/configmaps/{OBJECT}");
    let answer = endpoint.ask(connection, &path, None).await?;
    if answer.status != 200 {
        bail!("status {}", answer.status);
    }
    Ok(answer.connection)
}

async fn write(endpoint: Endpoint, record: Arc<Mutex<Record>>, number: u64) {
    let asked = Instant::now();
    let body =
        format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{}"}}}}"#, name(number));
    let path = format!("/api/v1/namespaces/{NAMESPACE}/configmaps");
    let done = in_time(async {
        let answer = endpoint.ask(endpoint.connect().await?, &path, Some(&body)).await?;
        if answer.status != 201 {
            bail!("status {}", answer.status);
        }
        Ok(())
    })
    .await;
    if done.is_ok() {
        record.lock().expect("no client panicked").acknowledged.push(number);
    }
    note(&record, Kind::Write, asked, done);
}

async fn in_time<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    match timeout(PATIENCE, work).await {
        Ok(done) => done,
        Err(_) => bail!("no answer in {PATIENCE:?}"),
    }
}

fn note(record: &Mutex<Record>, kind: Kind, asked: Instant, done: Result<()>) {
    let failed = done.err().map(|e| format!("{e:#}"));
    record.lock().expect("no client panicked").add(Request { kind, asked, ended: Instant::now(), failed });
}
