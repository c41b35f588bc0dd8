//! What is there: the planner's and `status`' view of machines, agents and the API.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Result;
use bootstrap::Identity;
use bootstrap::api::{self, Health, NodeSeen};
use drivers::MachineState as Machine;
use drivers::machine::{disk, files};
use futures::future::join_all;
use model::node_config::Setup;
use model::node_spec::{API_SERVER_POD, NodeState, PEERS_PATH, PrepareState, STATIC_POD_DIR};
use model::status::{Apiserver, Host, NodeStatusInput};
use model::{Cluster, Cni, Home, Node, names};
use plan::{Api, Image, MachineState, Observed, ObservedNode};

use super::channel::Machines;
use super::{certificates, containers, images, machines, manifests, membership, setup};

/// Everything asked here is on this machine: an answer that takes longer is none.
const LOOK: Duration = Duration::from_millis(1500);
/// But a busy API server is not one that is stopped: who refuses connections is known at once, who is slow is waited
/// for. Many nodes on few cores make it take seconds.
const PATIENCE: Duration = Duration::from_secs(5);
/// An API server that is not ready for longer than this is broken, or begins.
const PASSING: Duration = Duration::from_secs(3);
const LOOK_AGAIN: Duration = Duration::from_millis(100);
const NAME_LABEL: &str = "minikube.k8s.io/name";
const CONTROLLERS: &str = "kube-controller-manager.yaml";

/// All that a plan depends on.
/// `leaving` are control planes that are not to take part in the election.
pub async fn observe(
    home: &Home,
    cluster: &Cluster,
    driver: &Machines,
    leaving: &[String],
) -> Result<Observed> {
    let machines = machines_of(&cluster.name, Some(cluster), driver).await?;
    // Asking for an address that no machine holds only costs time.
    let runs = cluster.control_planes().any(|n| machines.get(&cluster.machine(n)) == Some(&Machine::Running));
    let client = if runs { client(home, cluster, driver) } else { None };
    let api = async {
        match &client {
            Some(client) => Some((api::health(client, LOOK).await.ok()?, client)),
            None => None,
        }
    };
    let running: Vec<String> =
        machines.iter().filter(|(_, s)| **s == Machine::Running).map(|(m, _)| m.clone()).collect();
    let (network, api) = tokio::join!(driver.network_is_up(cluster, &running), api);
    // An API that does not answer may still be that of a cluster which was set up long ago. It may also have said
    // that it is ready and be silent now: its etcd has just lost its majority.
    let remembered = configured_file(home, &cluster.name).exists();
    let (configured, system_ready) = match &api {
        Some((Health::Ready, client)) => {
            let (marked, ready) =
                tokio::join!(api::is_marked(client, LOOK), is_system_ready(client, cluster));
            (marked.unwrap_or(remembered), ready)
        }
        _ => (remembered, false),
    };
    let wanted = cluster.nodes.iter().map(|n| (cluster.machine(n), Some(n)));
    let strays = machines.keys().filter(|m| cluster.find_node(m).is_none()).map(|m| (m.clone(), None));
    let peers = machines::peers_file(home, cluster, leaving)?.data;
    let identity = Identity::load(home, &cluster.name).ok();
    let in_api = match &api {
        Some((_, client)) => api::observe_nodes(client, LOOK).await.ok(),
        None => None,
    };
    let answers = in_api.is_some();
    let in_api = in_api.unwrap_or_default();
    let found = certificates::look(home, cluster)?;
    let found = found.as_ref();
    let seen = join_all(wanted.chain(strays).map(|(machine, node)| {
        let state = machines.get(&machine).copied();
        let (peers, identity, in_api) = (&peers, identity.as_ref(), in_api.get(&machine));
        async move {
            let place = Place { home, cluster, driver, machine: &machine, node, identity };
            let mut observed = observe_node(place, state, in_api).await;
            observed.adopted |= !answers && remembered;
            observed.registered |= !answers;
            if node.is_some_and(|n| n.control_plane) && state.is_some() {
                observed.membership = membership::of(home, &cluster.name, driver, &machine, configured).await;
            }
            if let Some(node) = node.filter(|_| state.is_some()) {
                let (wanted, recorded) = (Setup::of(cluster, node), setup::recorded(home, &machine));
                let (certified, api_certificate) = certificates::of_node(home, cluster, node, found);
                observed.setup = setup::state(&wanted, recorded.as_ref()).max(certified);
                observed.api_certificate = api_certificate || !node.control_plane;
                observed.adopted &= wanted.same_in_api(&recorded.unwrap_or_default());
            }
            observed.peers = files::read(home, &machine, PEERS_PATH).as_ref() == Some(peers);
            (machine, observed)
        }
    }))
    .await;
    let record = containers::Record::read(home, &cluster.name);
    Ok(Observed {
        image: if images::present(home, cluster, driver).await? { Image::Present } else { Image::Absent },
        certificates: found.is_some_and(|f| f.stale.is_empty()),
        network: network?,
        nodes: seen.into_iter().filter(|(_, n)| n.machine != MachineState::Absent).collect(),
        configured,
        manifests: manifests::applied(home, &cluster.name),
        images: record.has_sources(&cluster.extras.images),
        loaded: !record.images.is_empty(),
        system_ready,
    })
}

struct Place<'a> {
    home: &'a Home,
    cluster: &'a Cluster,
    driver: &'a Machines,
    machine: &'a str,
    /// `None` for a machine that is not wanted any more.
    node: Option<&'a Node>,
    identity: Option<&'a Identity>,
}

async fn observe_node(place: Place<'_>, state: Option<Machine>, in_api: Option<&NodeSeen>) -> ObservedNode {
    let Place { home, cluster, driver, machine, node, identity } = place;
    let answers = state == Some(Machine::Running) && !driver.is_frozen(machine).await;
    let agent = if answers { driver.state(machine).await } else { None };
    let control_plane = node.filter(|n| n.control_plane);
    // Each API server for itself: behind the virtual address there is always one that answers.
    let own_api = async {
        match (identity, control_plane) {
            (Some(identity), Some(node)) if agent.is_some() => {
                let own = driver.client_of(identity, cluster, node).ok()?;
                api::health(&own, LOOK).await.ok()
            }
            _ => None,
        }
    };
    let (own_api, images) = tokio::join!(own_api, async {
        agent.is_some() && containers::is_complete(home, &cluster.name, driver, machine).await
    });
    // Is the kubelet told to run this?
    let runs = |pod: &str| match &agent {
        Some(agent) => agent.static_pods.iter().any(|f| f == pod),
        None => files::exists(home, machine, &format!("{STATIC_POD_DIR}/{pod}")),
    };
    ObservedNode {
        machine: match state {
            None => MachineState::Absent,
            Some(Machine::Stopped) => MachineState::Stopped,
            Some(Machine::Running) => MachineState::Running,
        },
        up: agent.as_ref().is_some_and(is_up) && driver.is_connected(machine).await.unwrap_or(true),
        api: match own_api {
            Some(Health::Ready) => Api::Ready,
            Some(Health::Serving) => Api::Serving,
            None => Api::Down,
        },
        held: control_plane.is_some() && state.is_some() && !runs(API_SERVER_POD),
        controllers: state.is_some() && runs(CONTROLLERS),
        adopted: in_api.is_some_and(|n| is_adopted(cluster, n)),
        registered: in_api.is_some(),
        ready: in_api.is_some_and(|n| n.ready),
        peers: true,
        images,
        setup: plan::Setup::AsWanted,
        api_certificate: true,
        membership: plan::Membership::Joined,
    }
}

/// kubeadm has made its manifests.
pub fn is_prepared(home: &Home, machine: &str) -> bool {
    files::exists(home, machine, bootstrap::paths::PREPARED)
}

/// kubeadm makes its manifests again when it boots.
pub fn forget_prepared(home: &Home, machine: &str) -> Result<()> {
    files::remove(home, machine, bootstrap::paths::PREPARED)
}

/// The first file of etcd's log: every member has one.
pub async fn has_etcd_data(home: &Home, driver: &Machines, machine: &str) -> bool {
    let log = format!("{}/member/wal", bootstrap::paths::ETCD_DATA);
    if !disk::has_disk(home, machine) {
        return files::has_entries(home, machine, &log);
    }
    // A disk of its own is seen only in the node. One that is off was a member when it was last seen.
    let look = ["sh", "-c", "ls -A \"$1\" 2>/dev/null | grep -q .", "look", &log].map(str::to_owned);
    driver.run(machine, &look).await.map_or(true, |output| output.code == 0)
}

pub fn configured_file(home: &Home, profile: &str) -> std::path::PathBuf {
    home.profile(profile).join("configured")
}

/// Has the Node object what we give it?
pub fn is_adopted(cluster: &Cluster, node: &NodeSeen) -> bool {
    node.pod_cidr.is_some() && node.labels.get(NAME_LABEL) == Some(&cluster.name)
}

pub fn is_up(agent: &NodeState) -> bool {
    !agent.stopping
        && agent.network_ready
        && agent.prepare == PrepareState::Done
        && agent.service("kubelet").is_some_and(|s| s.running)
}

/// A client of the whole cluster; `None` while there is no certificate for one.
pub fn client(home: &Home, cluster: &Cluster, driver: &Machines) -> Option<kube::Client> {
    driver.client(&Identity::load(home, &cluster.name).ok()?, cluster).ok()
}

async fn is_system_ready(client: &kube::Client, cluster: &Cluster) -> bool {
    api::system_pods_now(client, &control_planes(cluster), cluster.cni != Cni::None).await.is_ok()
}

pub fn control_planes(cluster: &Cluster) -> Vec<String> {
    cluster.control_planes().map(|n| cluster.machine(n)).collect()
}

/// Machines of a profile, also ones that its configuration has lost.
pub async fn machines_of(
    profile: &str,
    cluster: Option<&Cluster>,
    driver: &Machines,
) -> Result<BTreeMap<String, Machine>> {
    let all = driver.list().await?.into_iter();
    let listed = |machine: &str| cluster.is_some_and(|c| c.nodes.iter().any(|n| c.machine(n) == machine));
    // A machine whose record is damaged goes by its name.
    let ours = |m: &drivers::Machine| match &m.profile {
        Some(owner) => owner == profile,
        None => names::belongs(profile, &m.name) || listed(&m.name),
    };
    Ok(all.filter(ours).map(|m| (m.name, m.state)).collect())
}

/// What `status` says of each node.
pub async fn status(home: &Home, cluster: &Cluster, driver: &Machines) -> Result<Vec<NodeStatusInput>> {
    let machines = machines_of(&cluster.name, Some(cluster), driver).await?;
    let identity = Identity::load(home, &cluster.name).ok();
    let nodes = cluster.nodes.iter().map(|node| {
        let (machines, identity) = (&machines, &identity);
        async move {
            let machine = cluster.machine(node);
            match machines.get(&machine) {
                None => return NodeStatusInput::down(Host::Nonexistent),
                Some(Machine::Stopped) => return NodeStatusInput::down(Host::Stopped),
                Some(Machine::Running) if driver.is_frozen(&machine).await => {
                    return NodeStatusInput::down(Host::Paused);
                }
                Some(Machine::Running) => {}
            }
            let agent = driver.state(&machine).await;
            let apiserver = match identity {
                // What stands still does not answer: asking would only cost time.
                _ if agent.as_ref().is_some_and(|a| a.hold.freezes("kube-system")) => Apiserver::Paused,
                Some(identity) if node.control_plane => apiserver(driver, identity, cluster, node).await,
                _ => Apiserver::Stopped,
            };
            NodeStatusInput {
                host: Host::Running,
                kubelet_running: agent
                    .as_ref()
                    .is_some_and(|a| a.service("kubelet").is_some_and(|s| s.running)),
                apiserver,
                var_used_percent: agent.as_ref().map_or(0, |a| a.var_used_percent),
                vip_term: agent.filter(|a| a.has_vip).map(|a| a.vip.map_or(0, |v| v.term)),
            }
        }
    });
    Ok(join_all(nodes).await)
}

async fn apiserver(driver: &Machines, identity: &Identity, cluster: &Cluster, node: &Node) -> Apiserver {
    let Ok(client) = driver.client_of(identity, cluster, node) else { return Apiserver::Error };
    let began = Instant::now();
    loop {
        match api::health(&client, PATIENCE).await {
            Ok(Health::Ready) => return Apiserver::Running,
            // On a busy host one look at etcd may be late, and the next one is not.
            Ok(Health::Serving) if began.elapsed() < PASSING => tokio::time::sleep(LOOK_AGAIN).await,
            Ok(Health::Serving) => return Apiserver::Error,
            Err(_) => return Apiserver::Stopped,
        }
    }
}
