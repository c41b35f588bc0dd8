//! What changes when a cluster is to become another one.

use std::fmt;

use model::cluster::Node;
use model::node_config::change::json;
use model::node_config::{Change, Setup, Takes};
use model::{Cluster, Cni, NodeConfig};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeChange {
    pub name: String,
    pub changes: Vec<Change>,
}

impl NodeChange {
    pub fn takes(&self) -> Takes {
        self.changes.iter().map(|c| c.takes).max().unwrap_or(Takes::Live)
    }
}

/// Something that cannot become something else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fixed {
    /// `None`: of the cluster.
    pub node: Option<String>,
    pub what: &'static str,
    pub from: String,
    pub to: String,
    /// How to get there all the same.
    pub how: String,
}

impl fmt::Display for Fixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fixed { what, from, to, how, .. } = self;
        let of = self.node.as_ref().map_or(String::new(), |n| format!(" of node {n}"));
        write!(f, "{what}{of} cannot be changed from {from} to {to}: {how}")
    }
}

/// Nodes by name; names as in the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Diff {
    pub added: Vec<Node>,
    pub changed: Vec<NodeChange>,
    pub removed: Vec<Node>,
    /// Of the cluster itself; all of it while it runs.
    pub cluster: Vec<Change>,
}

impl Diff {
    pub fn is_empty(&self) -> bool {
        *self == Diff::default()
    }
}

pub fn diff(current: &Cluster, wanted: &Cluster) -> Result<Diff, Vec<Fixed>> {
    let find = |cluster: &Cluster, name: &str| cluster.nodes.iter().find(|n| n.name == name).cloned();
    let mut fixed = fixed_of_cluster(current, wanted);
    let mut out = Diff { cluster: of_cluster(current, wanted), ..Diff::default() };
    for new in &wanted.nodes {
        let Some(old) = find(current, &new.name) else {
            out.added.push(new.clone());
            continue;
        };
        let (before, after) = (current.config_of(&old), wanted.config_of(new));
        let shown = wanted.machine(new);
        fixed.extend(fixed_of_node(&shown, &old, new, &before, &after));
        let changes = Setup::of(current, &old).changes(&Setup::of(wanted, new));
        if !changes.is_empty() {
            out.changed.push(NodeChange { name: new.name.clone(), changes });
        }
    }
    out.removed = current.nodes.iter().filter(|n| find(wanted, &n.name).is_none()).cloned().collect();
    if fixed.is_empty() { Ok(out) } else { Err(fixed) }
}

fn role(node: &Node) -> &'static str {
    if node.control_plane { "control-plane" } else { "worker" }
}

fn fixed_of_node(shown: &str, old: &Node, new: &Node, a: &NodeConfig, b: &NodeConfig) -> Vec<Fixed> {
    let how =
        || format!("delete the node ({shown}) first, then it is made anew, or give the new one another name");
    let fixed = |change: Change| Fixed {
        node: Some(shown.to_owned()),
        what: change.what,
        from: change.from,
        to: change.to,
        how: how(),
    };
    // Not said is the default, which is not a change.
    let image = |i: &Option<String>| i.clone().unwrap_or_else(|| "the default".to_owned());
    let runtime = |i: &Option<String>| i.clone().unwrap_or_else(|| "containerd".to_owned());
    let shown_text = |t: &String| t.clone();
    let disk = |mib: &Option<u32>| mib.map_or("the host's disk".to_owned(), |mib| format!("{mib}Mi"));
    [
        Change::between("role", Takes::Restart, (&role(old), &role(new)), |r| (*r).to_owned()),
        Change::between(
            "baseImage",
            Takes::Restart,
            (&image(&a.base_image), &image(&b.base_image)),
            shown_text,
        ),
        Change::between("diskSize", Takes::Restart, (&a.own_disk_mib(), &b.own_disk_mib()), disk),
        Change::between(
            "containerRuntime",
            Takes::Restart,
            (&runtime(&a.container_runtime), &runtime(&b.container_runtime)),
            shown_text,
        ),
    ]
    .into_iter()
    .flatten()
    .map(fixed)
    .collect()
}

/// What every node was made with.
fn fixed_of_cluster(a: &Cluster, b: &Cluster) -> Vec<Fixed> {
    let cni = |c: &Cluster| match &c.cni {
        Cni::BuiltIn => "auto".to_owned(),
        Cni::None => "none".to_owned(),
        Cni::Manifest(path) => path.clone(),
    };
    let pairs = [
        ("driver", a.driver.to_string(), b.driver.to_string()),
        ("networking.nodeSubnet", a.network.subnet.to_string(), b.network.subnet.to_string()),
        ("networking.podSubnet", a.network.pod_cidr.to_string(), b.network.pod_cidr.to_string()),
        ("networking.serviceSubnet", a.network.service_cidr.to_string(), b.network.service_cidr.to_string()),
        ("networking.dnsDomain", a.network.dns_domain.clone(), b.network.dns_domain.clone()),
        ("apiServer.port", a.api_port.to_string(), b.api_port.to_string()),
        ("cni", cni(a), cni(b)),
    ];
    let how = format!("delete the cluster {:?} and start it anew, or give the new one another name", a.name);
    let fixed = |(what, from, to): (&'static str, String, String)| {
        (from != to).then(|| Fixed { node: None, what, from, to, how: how.clone() })
    };
    pairs.into_iter().filter_map(fixed).collect()
}

fn of_cluster(a: &Cluster, b: &Cluster) -> Vec<Change> {
    use Takes::Live;
    let sans = |c: &Cluster| (c.api_names.clone(), c.api_ips.clone());
    let context = |c: &Cluster| (c.namespace.clone(), c.keep_context, c.embed_certs);
    [
        Change::between("apiServer.extraSANs", Live, (&sans(a), &sans(b)), json),
        Change::between("certExpiration", Live, (&a.cert_expiration_hours, &b.cert_expiration_hours), |h| {
            format!("{h}h")
        }),
        Change::between("kubeconfig", Live, (&context(a), &context(b)), json),
        Change::between("wait", Live, (&a.wait.components, &b.wait.components), json),
        Change::between("addons", Live, (&a.addons, &b.addons), json),
        Change::between(
            "networking.kubeProxyMode",
            Live,
            (&a.extras.kube_proxy_mode, &b.extras.kube_proxy_mode),
            json,
        ),
        Change::between("manifests", Live, (&a.extras.manifests, &b.extras.manifests), json),
        Change::between("images", Live, (&a.extras.images, &b.extras.images), json),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
#[path = "diff_tests.rs"]
mod tests;
