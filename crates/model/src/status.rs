//! Status words of nodes and clusters, their codes, the exit bitmask and the JSON shapes.

use std::net::Ipv4Addr;

use serde::Serialize;

use crate::{Cluster, Node};

/// What was observed of one node, in the order of `Cluster::nodes`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeStatusInput {
    pub host: Host,
    pub kubelet_running: bool,
    /// Meaningful for control planes only.
    pub apiserver: Apiserver,
    /// Per cent of the node's /var in use.
    pub var_used_percent: u8,
    /// Set when the virtual address is on this node: the number of the election that it won.
    pub vip_term: Option<u64>,
}

impl NodeStatusInput {
    /// A node whose machine does not run.
    pub fn down(host: Host) -> NodeStatusInput {
        NodeStatusInput {
            host,
            kubelet_running: false,
            apiserver: Apiserver::Stopped,
            var_used_percent: 0,
            vip_term: None,
        }
    }
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($variant:ident),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name { $($variant,)* }

        impl $name {
            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => stringify!($variant),)* }
            }
        }
    };
}

words! {
    /// The state of a machine.
    Host { Running, Stopped, Paused, Starting, Error, Nonexistent }
}
words! {
    /// The state of a control plane's API server.
    Apiserver { Running, Stopped, Paused, Error }
}
words! {
    /// Whether the user's kubeconfig points to this cluster.
    Kubeconfig { Configured, Misconfigured }
}

/// A node whose /var is this full counts as broken.
const STORAGE_FULL_PERCENT: u8 = 99;
const IRRELEVANT: &str = "Irrelevant";
const INSUFFICIENT_STORAGE: &str = "InsufficientStorage";

/// One node as `status` prints it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NodeStatus {
    #[serde(rename = "Name")]
    pub name: String,
    #[serde(rename = "Host")]
    pub host: String,
    #[serde(rename = "Kubelet")]
    pub kubelet: String,
    #[serde(rename = "APIServer")]
    pub apiserver: String,
    #[serde(rename = "Kubeconfig")]
    pub kubeconfig: String,
    #[serde(rename = "Worker")]
    pub worker: bool,
    #[serde(flatten)]
    pub session: Session,
    // minikube has none of the following: they come last.
    #[serde(rename = "IP")]
    pub ip: Ipv4Addr,
    #[serde(rename = "Primary")]
    pub primary: bool,
    /// The cluster's, the same on all nodes: a template that prints one node can name the holder.
    #[serde(rename = "VirtualIP")]
    pub vip: Ipv4Addr,
    /// The machine that has it; empty when none does.
    #[serde(rename = "VirtualIPHolder")]
    pub holder: String,
    /// What is wrong with it on purpose.
    #[serde(rename = "Faults", skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<FaultShown>,
}

/// A fault that somebody put in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct FaultShown {
    pub kind: String,
    pub text: String,
    pub since: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

/// What is said of control planes only while it is so; `in-use`, or the time that is left.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Session {
    #[serde(rename = "TimeToStop", skip_serializing_if = "String::is_empty")]
    pub time_to_stop: String,
    #[serde(rename = "DockerEnv", skip_serializing_if = "String::is_empty")]
    pub docker_env: String,
    #[serde(rename = "PodManEnv", skip_serializing_if = "String::is_empty")]
    pub podman_env: String,
}

/// All nodes of a cluster; `seen` in the order of `Cluster::nodes`.
pub fn of_cluster(cluster: &Cluster, seen: &[NodeStatusInput], kubeconfig: Kubeconfig) -> Vec<NodeStatus> {
    let pairs = || cluster.nodes.iter().zip(seen);
    // Where the network is cut two may have it; the older one of them does not know better yet.
    let holder = pairs().filter_map(|(n, s)| Some((s.vip_term?, n))).max_by_key(|(term, _)| *term);
    let holder = holder.map(|(_, n)| cluster.machine(n)).unwrap_or_default();
    pairs().map(|(node, seen)| NodeStatus::of(cluster, node, seen, kubeconfig, &holder)).collect()
}

impl NodeStatus {
    fn of(
        cluster: &Cluster,
        node: &Node,
        seen: &NodeStatusInput,
        kubeconfig: Kubeconfig,
        holder: &str,
    ) -> NodeStatus {
        let word = |s: &str| s.to_owned();
        let mut status = NodeStatus {
            name: cluster.machine(node),
            host: word(seen.host.as_str()),
            kubelet: word(seen.host.as_str()),
            apiserver: word(seen.host.as_str()),
            kubeconfig: word(seen.host.as_str()),
            worker: !node.control_plane,
            session: Session::default(),
            ip: node.ip,
            primary: cluster.primary().is_some_and(|p| p.name == node.name),
            vip: cluster.vip(),
            holder: word(holder),
            faults: Vec::new(),
        };
        // A host that does not run gives its word to all that would run on it.
        if seen.host != Host::Running {
            return status;
        }
        if seen.var_used_percent >= STORAGE_FULL_PERCENT {
            status.host = word(INSUFFICIENT_STORAGE);
        }
        status.kubelet = word(if seen.kubelet_running { "Running" } else { "Stopped" });
        if node.control_plane {
            status.apiserver = word(seen.apiserver.as_str());
            status.kubeconfig = word(kubeconfig.as_str());
        } else {
            status.apiserver = word(IRRELEVANT);
            status.kubeconfig = word(IRRELEVANT);
        }
        status
    }

    fn is_healthy_control_plane(&self) -> bool {
        !self.worker
            && self.host == "Running"
            && self.kubelet == "Running"
            && self.apiserver == "Running"
            && self.kubeconfig == "Configured"
    }

    /// The block of `status` in text form; ends with a blank line. minikube's lines come first, as
    /// they are there: scripts count them.
    pub fn text(&self) -> String {
        let kind = if self.worker { "Worker" } else { "Control Plane" };
        let mut text =
            format!("{}\ntype: {kind}\nhost: {}\nkubelet: {}\n", self.name, self.host, self.kubelet);
        if !self.worker {
            text += &format!("apiserver: {}\nkubeconfig: {}\n", self.apiserver, self.kubeconfig);
            let Session { time_to_stop, docker_env, podman_env } = &self.session;
            for (name, value) in
                [("timeToStop", time_to_stop), ("docker-env", docker_env), ("podman-env", podman_env)]
            {
                if !value.is_empty() {
                    text += &format!("{name}: {value}\n");
                }
            }
        }
        text += &format!("ip: {}\n", self.ip);
        if self.primary {
            text += "primary: true\n";
        }
        if self.holder == self.name {
            text += &format!("virtual-ip: {}\n", self.vip);
        }
        for fault in &self.faults {
            text += &format!("fault: {}\n", fault.text);
        }
        text + "\n"
    }

    /// The fields a `--format` template can name.
    pub fn field(&self, name: &str) -> Option<String> {
        Some(match name {
            "Name" => self.name.clone(),
            "Host" => self.host.clone(),
            "Kubelet" => self.kubelet.clone(),
            "APIServer" => self.apiserver.clone(),
            "Kubeconfig" => self.kubeconfig.clone(),
            "Worker" => self.worker.to_string(),
            "IP" => self.ip.to_string(),
            "Primary" => self.primary.to_string(),
            "VirtualIP" => self.vip.to_string(),
            "VirtualIPHolder" => self.holder.clone(),
            "TimeToStop" => self.session.time_to_stop.clone(),
            "DockerEnv" => self.session.docker_env.clone(),
            "PodManEnv" => self.session.podman_env.clone(),
            _ => return None,
        })
    }
}

/// Bit 1: some host is not running; 2: some kubelet or API server; 4: some kubeconfig is wrong.
pub fn exit_code(nodes: &[NodeStatus]) -> u8 {
    if nodes.is_empty() {
        return 7;
    }
    nodes.iter().fold(0, |code, n| {
        code | u8::from(n.host != "Running")
            | if n.kubelet != "Running" || (n.apiserver != "Running" && n.apiserver != IRRELEVANT) {
                2
            } else {
                0
            }
            | if n.kubeconfig != "Configured" && n.kubeconfig != IRRELEVANT { 4 } else { 0 }
    })
}

/// One node is an object, several are an array.
pub fn nodes_json(nodes: &[NodeStatus]) -> String {
    let json = match nodes {
        [] => return "null".to_owned(),
        [one] => serde_json::to_string(one),
        many => serde_json::to_string(many),
    };
    json.unwrap_or_default()
}

/// A status code of a cluster or of a part of it, HTTP-like, with the word shown for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code(pub u16);

impl Code {
    pub const STARTING: Code = Code(100);
    pub const PAUSING: Code = Code(101);
    pub const UNPAUSING: Code = Code(102);
    pub const STOPPING: Code = Code(110);
    pub const DELETING: Code = Code(120);
    pub const OK: Code = Code(200);
    pub const HAPPY: Code = Code(201);
    pub const DEGRADED: Code = Code(204);
    pub const STOPPED: Code = Code(405);
    pub const ERROR: Code = Code(500);
    pub const INSUFFICIENT_STORAGE: Code = Code(507);
    pub const UNKNOWN: Code = Code(520);

    pub fn of_word(word: &str) -> Code {
        Code(match word {
            "Starting" => 100,
            "Pausing" => 101,
            "Unpausing" => 102,
            "Stopping" => 110,
            "Running" | "Configured" | "OK" => 200,
            "HAppy" => 201,
            "Warning" => 203,
            "Degraded" => 204,
            "Nonexistent" | "NotFound" => 404,
            "Stopped" => 405,
            "Paused" => 418,
            "Error" | "Misconfigured" => 500,
            INSUFFICIENT_STORAGE => 507,
            _ => 520,
        })
    }

    pub fn name(self) -> &'static str {
        match self.0 {
            100 => "Starting",
            101 => "Pausing",
            102 => "Unpausing",
            103 => "Deleting",
            110 => "Stopping",
            200 => "OK",
            201 => "HAppy",
            203 => "Warning",
            204 => "Degraded",
            404 => "NotFound",
            405 => "Stopped",
            418 => "Paused",
            500 => "Error",
            507 => INSUFFICIENT_STORAGE,
            120 => "",
            _ => "Unknown",
        }
    }
}

/// What `events.json` says about the last start, stop or pause.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    /// In order: the names of steps, and exit codes of errors.
    pub entries: Vec<HistoryEntry>,
    pub age_seconds: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HistoryEntry {
    Step { name: String, message: String },
    Error { exit_code: Option<u16>, message: String },
}

/// A step that was announced this long ago is not under way any more.
const TRANSIENT_SECONDS: u64 = 600;

/// The state of a whole cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterWord {
    pub code: Code,
    pub name: String,
    pub step: String,
    pub step_detail: String,
}

/// The word for a cluster. `history` is `None` when there is no events file: then it is the primary's raw word.
pub fn cluster_word(nodes: &[NodeStatus], ha: bool, history: Option<&History>) -> ClusterWord {
    let mut word = ClusterWord {
        code: Code::UNKNOWN,
        name: String::new(),
        step: String::new(),
        step_detail: String::new(),
    };
    let Some(primary) = primary(nodes) else { return word };
    let raw = if primary.host == INSUFFICIENT_STORAGE { &primary.host } else { &primary.apiserver };
    word.code = Code::of_word(raw);
    let Some(history) = history else {
        word.name = raw.clone();
        return word;
    };
    let mut transient = None;
    let mut failed = None;
    let mut started = false;
    for entry in &history.entries {
        match entry {
            HistoryEntry::Step { name, message } => {
                (word.step, word.step_detail) = (name.clone(), message.clone());
                transient = match name.as_str() {
                    "Initial Minikube Setup" => Some(Code::STARTING),
                    "Stopping" => Some(Code::STOPPING),
                    "Deleting" => Some(Code::DELETING),
                    "Pausing" => Some(Code::PAUSING),
                    "Unpausing" => Some(Code::UNPAUSING),
                    "Done" => None,
                    _ => transient,
                };
                if name == "Done" {
                    started = true;
                    (word.step, word.step_detail) = (String::new(), String::new());
                }
            }
            HistoryEntry::Error { exit_code: Some(26), .. } => transient = Some(Code::INSUFFICIENT_STORAGE),
            HistoryEntry::Error { exit_code: Some(code), .. } => {
                transient = Some(Code(*code));
                failed = Some(Code(*code));
            }
            HistoryEntry::Error { exit_code: None, .. } => {}
        }
    }
    if let Some(code) = transient.filter(|_| history.age_seconds < TRANSIENT_SECONDS) {
        word.code = code;
    } else {
        (word.step, word.step_detail) = (String::new(), String::new());
    }
    if ha && started {
        word.code = match nodes.iter().filter(|n| n.is_healthy_control_plane()).count() {
            0 | 1 => Code::STOPPED,
            2 => Code::DEGRADED,
            _ => Code::HAPPY,
        };
    }
    // The code of a command that failed is its exit code, which has no word of its own.
    word.name = if failed == Some(word.code) { "Error" } else { word.code.name() }.to_owned();
    word
}

/// The first control plane: after a deletion, a worker may stand before it in the list.
fn primary(nodes: &[NodeStatus]) -> Option<&NodeStatus> {
    nodes.iter().find(|n| !n.worker).or(nodes.first())
}

#[derive(Serialize)]
struct Part {
    #[serde(rename = "Name")]
    name: String,
    #[serde(rename = "StatusCode")]
    code: u16,
    #[serde(rename = "StatusName")]
    status: String,
}

fn part(name: &str, word: &str) -> serde_json::Value {
    let code = Code::of_word(word);
    serde_json::json!(Part { name: name.to_owned(), code: code.0, status: code.name().to_owned() })
}

/// The document of `status -o json -l cluster`.
pub fn cluster_json(
    profile: &str,
    nodes: &[NodeStatus],
    word: &ClusterWord,
    version: &str,
) -> serde_json::Value {
    use serde_json::{Map, Value, json};
    let mut doc = Map::new();
    doc.insert("Name".into(), profile.into());
    doc.insert("StatusCode".into(), word.code.0.into());
    doc.insert("StatusName".into(), word.name.clone().into());
    if !word.step.is_empty() {
        doc.insert("Step".into(), word.step.clone().into());
    }
    if !word.step_detail.is_empty() {
        doc.insert("StepDetail".into(), word.step_detail.clone().into());
    }
    doc.insert("BinaryVersion".into(), version.into());
    if let Some(left) = primary(nodes).map(|n| &n.session.time_to_stop).filter(|t| !t.is_empty()) {
        doc.insert("TimeToStop".into(), left.clone().into());
    }
    let kubeconfig = primary(nodes).map_or("", |n| n.kubeconfig.as_str());
    doc.insert("Components".into(), json!({ "kubeconfig": part("kubeconfig", kubeconfig) }));
    let list = nodes.iter().map(|n| {
        let mut entry = part(&n.name, &n.host);
        let mut parts = Map::new();
        if !n.worker {
            parts.insert("apiserver".into(), part("apiserver", &n.apiserver));
        }
        parts.insert("kubelet".into(), part("kubelet", &n.kubelet));
        entry["Components"] = Value::Object(parts);
        entry["IP"] = n.ip.to_string().into();
        entry["Primary"] = n.primary.into();
        if !n.faults.is_empty() {
            entry["Faults"] = json!(n.faults);
        }
        entry
    });
    doc.insert("Nodes".into(), list.collect());
    if let Some(first) = nodes.first() {
        doc.insert("VirtualIP".into(), first.vip.to_string().into());
        doc.insert("VirtualIPHolder".into(), first.holder.clone().into());
    }
    Value::Object(doc)
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
