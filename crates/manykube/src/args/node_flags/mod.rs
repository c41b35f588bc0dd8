//! Flags that say what a node is to have. `start` has them for all nodes of a new cluster, the commands
//! of single nodes for theirs. The values are read by the model's parsers, as those of a cluster file are.

mod binaries;
mod edit;
mod parse;
mod remove;
mod runtime;

use binaries::Binaries;

pub use edit::Edit;
pub use runtime::runtime;

/// What `start` shares with the commands of single nodes: it has a size and a version of its own.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Options of nodes")]
pub struct ConfigFlags {
    /// A flag of a Kubernetes component, like kubelet.max-pods=50; repeatable
    // Not split at commas, as in minikube: values have them.
    #[arg(long, visible_alias = "extra-opts", value_name = "COMPONENT.FLAG=VALUE")]
    extra_config: Vec<String>,
    /// Feature gates
    #[arg(long, value_delimiter = ',', value_name = "NAME=BOOL,…")]
    feature_gates: Vec<String>,
    /// Labels
    #[arg(long, visible_alias = "node-labels", value_delimiter = ',', value_name = "KEY=VALUE,…")]
    labels: Vec<String>,
    /// Taints
    #[arg(long, value_delimiter = ',', value_name = "KEY=VALUE:EFFECT,…")]
    taints: Vec<String>,
    /// A directory or file of the host; repeatable
    // minikube's boolean has the same name: without a value it is that one.
    #[arg(long, num_args = 0..=1, default_missing_value = "true", value_name = "HOST:NODE[:ro]")]
    mount: Vec<String>,
    /// The mount of minikube's --mount
    #[arg(long, hide = true, value_name = "HOST:NODE")]
    mount_string: Option<String>,
    /// Ports of the host that lead to the node
    #[arg(long, value_delimiter = ',', value_name = "[ADDRESS:]HOST:NODE[/PROTOCOL],…")]
    ports: Vec<String>,
    /// Another node image than the one of the version: of the store, or of a registry (HOST/NAME:TAG)
    #[arg(long, value_name = "IMAGE")]
    base_image: Option<String>,
    /// For drivers of virtual machines
    #[arg(long, hide = true, value_delimiter = ',')]
    iso_url: Vec<String>,
    /// For the docker runtime
    #[arg(long, hide = true)]
    docker_env: Vec<String>,
    /// For the docker runtime
    #[arg(long, hide = true)]
    docker_opt: Vec<String>,
    #[command(flatten)]
    binaries: Binaries,
}

/// All that one node may have of its own.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Options of nodes")]
pub struct NodeFlags {
    /// CPUs; "max" for all
    #[arg(long, value_name = "N")]
    cpus: Option<String>,
    /// Memory: MiB, or with a unit like 4g; "max" for all
    #[arg(short, long, value_name = "SIZE")]
    memory: Option<String>,
    /// A disk of its own, for all but images; of a new node only
    #[arg(long, value_name = "SIZE")]
    disk_size: Option<String>,
    /// The Kubernetes version, up to three minor versions behind the cluster's
    #[arg(long, value_name = "VERSION")]
    kubernetes_version: Option<String>,
    /// The container runtime (containerd)
    #[arg(short, long, value_name = "NAME")]
    container_runtime: Option<String>,
    #[command(flatten)]
    config: ConfigFlags,
}
