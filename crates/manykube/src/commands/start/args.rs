//! The flags of `start` that mean something here. What is not given stays `None`: then the existing
//! profile or the default decides.

use std::rc::Rc;
use std::time::Duration;

use super::vip;
use crate::args::inert::Inert;
use crate::args::node_flags::ConfigFlags;
use crate::args::values::go_duration;
use crate::report::Output;

#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// The cluster from a file, or from standard input (-)
    #[arg(short, long, value_name = "FILE")]
    pub file: Option<String>,
    /// That file, once it was read.
    #[arg(skip)]
    pub input: Option<Rc<super::file::Input>>,
    /// Remove nodes that the file does not have any more without asking
    #[arg(long)]
    pub yes: bool,
    /// What nodes are made of: docker, native or podman
    #[arg(short, long, visible_alias = "vm-driver")]
    pub driver: Option<String>,
    /// The Kubernetes version: v1.2.3, 1.2 (newest patch), stable, latest
    #[arg(long, value_name = "VERSION")]
    pub kubernetes_version: Option<String>,
    /// CPUs of each node; "max" for all
    #[arg(long, value_name = "N")]
    pub cpus: Option<String>,
    /// Memory of each node: MiB, or with a unit like 4g; "max" for all
    #[arg(short, long, value_name = "SIZE")]
    pub memory: Option<String>,
    /// A disk of its own for each node, for all but images; without it, or with 20000mb, nodes share the host's
    #[arg(long, value_name = "SIZE")]
    pub disk_size: Option<String>,
    /// Number of nodes
    #[arg(short, long, value_name = "N")]
    pub nodes: Option<u32>,
    /// Three control planes behind one virtual address
    #[arg(long)]
    pub ha: bool,
    /// Number of control planes among the nodes
    #[arg(long, value_name = "N")]
    pub control_planes: Option<u32>,
    /// The /24 that the nodes live in
    #[arg(long, value_name = "CIDR")]
    pub subnet: Option<String>,
    /// The address of the first node: a private one, in a /24 that is the cluster's then
    #[arg(long, value_name = "IP")]
    pub static_ip: Option<String>,
    /// Port of the API server
    #[arg(long, value_name = "PORT")]
    pub apiserver_port: Option<u16>,
    /// More names in the API server's certificate
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub apiserver_names: Vec<String>,
    /// More addresses in the API server's certificate
    #[arg(long, value_delimiter = ',', value_name = "IPS")]
    pub apiserver_ips: Vec<String>,
    /// How long certificates are valid
    #[arg(long, value_name = "DURATION", value_parser = go_duration)]
    pub cert_expiration: Option<Duration>,
    /// The range of service addresses
    #[arg(long, value_name = "CIDR")]
    pub service_cluster_ip_range: Option<String>,
    /// The cluster's DNS domain
    #[arg(long, value_name = "DOMAIN")]
    pub dns_domain: Option<String>,
    /// The container runtime (containerd)
    #[arg(short, long, value_name = "NAME")]
    pub container_runtime: Option<String>,
    /// The pod network: auto or bridge (ours), none, or a manifest file of another one
    #[arg(long, visible_alias = "cni-plugin", value_name = "NAME|FILE")]
    pub cni: Option<String>,
    /// Who holds the control planes' virtual address: agent (ours) or kube-vip
    #[arg(long, value_enum, value_name = "NAME", hide_possible_values = true)]
    pub vip: Option<vip::Holder>,
    /// The image of --vip=kube-vip, unless the node image has one: REGISTRY/NAME:TAG
    #[arg(long, value_name = "IMAGE")]
    pub vip_image: Option<String>,
    /// Give up a silent node after this time, and move its pods after as much again (Kubernetes: 50s and 5m)
    #[arg(long, value_name = "DURATION", value_parser = go_duration)]
    pub node_grace: Option<Duration>,
    /// Where ports of the cluster would be published on the host: the native driver publishes none.
    #[arg(long, hide = true, value_name = "IP")]
    pub listen_address: Option<String>,
    /// Put certificates into the kubeconfig instead of paths to them
    #[arg(long)]
    pub embed_certs: bool,
    /// Leave kubectl's current context as it is
    #[arg(long)]
    pub keep_context: bool,
    /// The namespace of the kubectl context
    #[arg(long)]
    pub namespace: Option<String>,
    /// What to wait for: all, none, or a list of apiserver, system_pods, default_sa, apps_running, node_ready, kubelet, extra
    #[arg(long, value_delimiter = ',', value_name = "PARTS")]
    pub wait: Option<Vec<String>>,
    /// How long to wait
    #[arg(long, default_value = "6m", value_name = "DURATION", value_parser = go_duration)]
    pub wait_timeout: Duration,
    /// When etcd has lost its majority for good: make a new one from what this node has of it, or from the
    /// freshest without a name, and join the others again
    #[arg(long, value_name = "NODE", num_args = 0..=1, default_missing_value = crate::core::FRESHEST)]
    pub recover_from: Option<String>,
    /// Addons to enable; see addons list
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub addons: Vec<String>,
    /// Check everything and print the plan, but change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Go on where a check says not to
    #[arg(long)]
    pub force: bool,
    /// Remove a new cluster that did not come up
    #[arg(long)]
    pub delete_on_failure: bool,
    /// text, or json: one event per line
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    pub output: Output,
    /// Scripts give empty words where a variable of theirs is empty
    #[arg(hide = true, value_parser = empty)]
    nothing: Vec<()>,
    #[command(flatten)]
    pub node: ConfigFlags,
    #[command(flatten)]
    pub inert: Inert,
}

fn empty(word: &str) -> Result<(), String> {
    if word.is_empty() { Ok(()) } else { Err(String::new()) }
}
