//! `status`: what runs, as text, JSON or a template; the exit code tells it too.

use std::time::Duration;

use anyhow::Result;
use model::status::{self, NodeStatus};
use model::{Cluster, Fault, Node, Reason};

use super::{cluster as common, print};
use crate::args::values::go_duration;
use crate::ctx::Ctx;
use crate::report::Output;
use crate::state::history;
use crate::template;
use crate::version::VERSION;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Layout {
    #[default]
    Nodes,
    Cluster,
}

/// How the state is shown.
#[derive(Debug, Clone, clap::Args)]
pub struct View {
    /// text or json
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    pub output: Output,
    /// A Go template: {{.Name}} {{.Host}} {{.Kubelet}} {{.APIServer}} {{.Kubeconfig}} {{.Worker}} {{.IP}}
    /// {{.Primary}} {{.VirtualIP}} {{.VirtualIPHolder}}
    #[arg(short, long, value_name = "TEMPLATE")]
    pub format: Option<String>,
    /// The shape of the JSON: nodes or cluster
    #[arg(short, long, value_enum, default_value_t, value_name = "LAYOUT")]
    pub layout: Layout,
    /// Print the state again and again
    #[arg(short, long, num_args = 0..=1, require_equals = true, default_missing_value = "1s", value_name = "INTERVAL", value_parser = go_duration)]
    pub watch: Option<Duration>,
}

#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub view: View,
    /// Only this node
    #[arg(short, long)]
    pub node: Option<String>,
}

/// The nodes whose state is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// As in minikube: with a template only the primary, else all.
    Usual,
    All,
    Workers,
    Node(String),
}

const MISCONFIGURED: &str = "

WARNING: Your kubectl is pointing to stale minikube-vm.
To fix the kubectl context, run `minikube update-context`
";

pub fn run(ctx: &Ctx, args: &Args) -> Result<u8> {
    report(ctx, &args.view, &args.node.clone().map_or(Which::Usual, Which::Node))
}

pub fn report(ctx: &Ctx, view: &View, which: &Which) -> Result<u8> {
    if view.output == Output::Json && view.format.is_some() {
        return Err(Fault::new(Reason::Usage, "Cannot use both --output and --format options").into());
    }
    let cluster = common::load(ctx)?;
    if let Which::Node(name) = which {
        common::node(&cluster, Some(name))?;
    }
    ctx.run(async {
        loop {
            let nodes = common::statuses(ctx, &cluster).await?;
            let list = chosen(&cluster, which, view.format.is_some(), &nodes);
            print(&render(ctx, &cluster, view, &nodes, &list)?);
            match view.watch {
                None => return Ok(status::exit_code(&list)),
                Some(interval) => tokio::select! {
                    () = tokio::time::sleep(interval) => {}
                    () = ctx.cancel.cancelled() => return Ok(0),
                },
            }
        }
    })
}

/// The nodes to report.
fn chosen(cluster: &Cluster, which: &Which, template: bool, nodes: &[NodeStatus]) -> Vec<NodeStatus> {
    let machine = |node: Option<&Node>| node.map(|n| cluster.machine(n)).unwrap_or_default();
    let keep: Box<dyn Fn(&NodeStatus) -> bool> = match which {
        Which::Usual if template => {
            let primary = machine(cluster.primary());
            Box::new(move |n| n.name == primary)
        }
        Which::Usual | Which::All => Box::new(|_| true),
        Which::Workers => Box::new(|n| n.worker),
        Which::Node(name) => {
            let node = machine(cluster.find_node(name));
            Box::new(move |n| n.name == node)
        }
    };
    nodes.iter().filter(|n| keep(n)).cloned().collect()
}

fn render(
    ctx: &Ctx,
    cluster: &Cluster,
    view: &View,
    nodes: &[NodeStatus],
    list: &[NodeStatus],
) -> Result<String> {
    if let Some(format) = &view.format {
        let texts: Result<String, String> =
            list.iter().map(|n| template::render(format, &|field| n.field(field))).collect();
        return texts.map_err(|e| {
            Fault::new(Reason::Usage, format!("--format: {e}"))
                .advice("Fields: .Name .Host .Kubelet .APIServer .Kubeconfig .Worker .IP .Primary .VirtualIP .VirtualIPHolder")
                .into()
        });
    }
    Ok(match (view.output, view.layout) {
        (Output::Json, Layout::Nodes) => status::nodes_json(list),
        (Output::Json, Layout::Cluster) => {
            let history = history::load(&ctx.home, &cluster.name);
            let word = status::cluster_word(nodes, cluster.is_ha(), history.as_ref());
            status::cluster_json(&cluster.name, nodes, &word, VERSION).to_string()
        }
        (Output::Text, _) => {
            let mut text: String = list.iter().map(NodeStatus::text).collect();
            if list.iter().any(|n| n.kubeconfig == "Misconfigured") {
                text += &MISCONFIGURED.replace("`minikube ", &format!("`{} ", ctx.tool));
            }
            text
        }
    })
}
