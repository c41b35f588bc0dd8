//! A clock beside a cluster that comes up: it asks the API servers and DNS, and nothing of it is the
//! cluster's own word that it is done. The same for every kind of cluster.

use std::net::Ipv4Addr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use bootstrap::Identity;
use bootstrap::api::{self, Client, Health};
use bootstrap::pki::Pair;
use drivers::Driver;
use drivers::docker::Docker;
use drivers::machine::files;
use drivers::native::Native;
use futures::future::join_all;
use k8s_openapi::ByteString;
use model::{Home, address, names};
use serde_json::Value;

use crate::{bare, usage};

const EVERY: Duration = Duration::from_millis(100);
const LOOK: Duration = Duration::from_millis(1500);
const LIMIT: f64 = 600.0;
const DNS: [&str; 7] =
    ["busybox", "timeout", "1", "busybox", "nslookup", "kubernetes.default.svc.cluster.local", "10.96.0.10"];

pub struct Wanted {
    pub profile: String,
    /// Seconds of the epoch at which it began.
    pub since: f64,
    pub port: u16,
    pub control_planes: u32,
    pub nodes: usize,
}

/// Prints `WHAT SECONDS CPU-SECONDS` when it is seen for the first time: api (one API server answers an
/// administrator), apis (all are ready), nodes (all are Ready), dns (DNS answers in the first control
/// plane), usable (all nodes are Ready, and DNS answers in every control plane), all (that, and all API
/// servers are ready).
pub async fn run(home: &Home, wanted: &Wanted) -> Result<()> {
    let machines = (1..=wanted.control_planes).map(|n| names::machine(&wanted.profile, &names::node(n)));
    let machines: Vec<String> = machines.collect();
    let mut silent = machines.clone();
    let driver = driver(home);
    let dns: Vec<String> = DNS.map(str::to_owned).into();
    let mut seen = Seen::default();
    loop {
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs_f64() - wanted.since;
        if now > LIMIT {
            bail!("{} is not up after {now:.0} s", wanted.profile);
        }
        if let Some(clients) = clients(home, &machines[0], wanted) {
            let health = join_all(clients.iter().map(|client| api::health(client, LOOK))).await;
            let answers = clients.iter().zip(&health).find(|(_, h)| h.is_ok()).map(|(client, _)| client);
            seen.note(home, wanted, "api", answers.is_some());
            seen.note(home, wanted, "apis", health.iter().all(|h| *h == Ok(Health::Ready)));
            if let (Some(client), false) = (answers, seen.has("nodes")) {
                let nodes = api::observe_nodes(client, LOOK).await.unwrap_or_default();
                let ready = nodes.values().filter(|n| n.ready).count();
                seen.note(home, wanted, "nodes", ready >= wanted.nodes && ready == nodes.len());
            }
        }
        if seen.has("api") {
            let ask = |machine: String| {
                let (driver, dns) = (&driver, &dns);
                async move {
                    let ask = async {
                        let node = protocol::Node::open(&machine, driver.connect(&machine).await?).await?;
                        anyhow::Ok(node.run(dns, Vec::new()).await?)
                    };
                    if ask.await.is_ok_and(|a| a.code == 0) { None } else { Some(machine) }
                }
            };
            silent = join_all(silent.into_iter().map(ask)).await.into_iter().flatten().collect();
            seen.note(home, wanted, "dns", !silent.contains(&machines[0]));
        }
        let usable = silent.is_empty() && seen.has("nodes");
        seen.note(home, wanted, "usable", usable);
        if usable && seen.has("apis") {
            seen.note(home, wanted, "all", true);
            return Ok(());
        }
        tokio::time::sleep(EVERY).await;
    }
}

/// As the command itself chooses it.
fn driver(home: &Home) -> Box<dyn Driver> {
    match std::env::var("MANYKUBE_DRIVER").as_deref() {
        Ok("docker") => Box::new(Docker::new(home.clone(), model::DriverKind::Docker)),
        _ => Box::new(Native::new(home.clone())),
    }
}

#[derive(Default)]
struct Seen(Vec<&'static str>);

impl Seen {
    fn has(&self, what: &str) -> bool {
        self.0.contains(&what)
    }

    fn note(&mut self, home: &Home, wanted: &Wanted, what: &'static str, is_so: bool) {
        if is_so && !self.has(what) {
            self.0.push(what);
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
            println!("{what} {:.2} {:.2}", now - wanted.since, usage::cpu(home));
        }
    }
}

/// One client per API server; `None` while there is nobody to be.
fn clients(home: &Home, machine: &str, wanted: &Wanted) -> Option<Vec<Client>> {
    let identity = Identity::load(home, &wanted.profile).or_else(|_| kubeadms(home, machine)).ok()?;
    let address = |number| address::node_ip(bare::SUBNET, number);
    let addresses: Vec<Ipv4Addr> = (1..=wanted.control_planes).filter_map(address).collect();
    addresses.into_iter().map(|ip| api::client(&identity, ip, wanted.port, api::direct()).ok()).collect()
}

/// Who may ask from the first moment on, as `kubeadm init` made him.
fn kubeadms(home: &Home, machine: &str) -> Result<Identity> {
    let text = files::read(home, machine, "/etc/kubernetes/super-admin.conf").context("not there yet")?;
    let config: Value = serde_saphyr::from_str(std::str::from_utf8(&text)?).context("not written yet")?;
    let field = |pointer: &str| -> Result<String> {
        let value = config.pointer(pointer).with_context(|| format!("no {pointer}"))?;
        let ByteString(bytes) = serde_json::from_value(value.clone())?;
        Ok(String::from_utf8(bytes)?)
    };
    let user = "/users/0/user";
    Ok(Identity {
        ca: field("/clusters/0/cluster/certificate-authority-data")?,
        client: Pair {
            cert: field(&format!("{user}/client-certificate-data"))?,
            key: field(&format!("{user}/client-key-data"))?,
        },
    })
}
