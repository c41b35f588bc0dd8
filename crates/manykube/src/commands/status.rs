//! `status`: what runs, as text, JSON or a template; the exit code tells it too.

use std::time::Duration;

use anyhow::Result;
use model::status::{self, NodeStatus};
use model::{Cluster, Fault, Reason};

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

#[derive(Debug, Clone, clap::Args)]
pub struct Args {
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
    /// Only this node
    #[arg(short, long)]
    pub node: Option<String>,
    /// Print the state again and again
    #[arg(short, long, num_args = 0..=1, require_equals = true, default_missing_value = "1s", value_name = "INTERVAL", value_parser = go_duration)]
    pub watch: Option<Duration>,
}

const MISCONFIGURED: &str = "

WARNING: Your kubectl is pointing to stale minikube-vm.
To fix the kubectl context, run `minikube update-context`
";

pub fn run(ctx: &Ctx, args: &Args) -> Result<u8> {
    if args.output == Output::Json && args.format.is_some() {
        return Err(Fault::new(Reason::Usage, "Cannot use both --output and --format options").into());
    }
    let cluster = common::load(ctx)?;
    if let Some(name) = &args.node {
        common::node(&cluster, Some(name))?;
    }
    ctx.run(async {
        loop {
            let nodes = common::statuses(ctx, &cluster).await?;
            print(&render(ctx, &cluster, args, &nodes)?);
            match args.watch {
                None => return Ok(status::exit_code(&chosen(&cluster, args, &nodes))),
                Some(interval) => tokio::select! {
                    () = tokio::time::sleep(interval) => {}
                    () = ctx.cancel.cancelled() => return Ok(0),
                },
            }
        }
    })
}

/// The nodes to report: the one asked for; with a template only the primary; else all.
fn chosen(cluster: &Cluster, args: &Args, nodes: &[NodeStatus]) -> Vec<NodeStatus> {
    let one = match (&args.node, &args.format) {
        (Some(name), _) => cluster.find_node(name),
        (None, Some(_)) => cluster.primary(),
        (None, None) => return nodes.to_vec(),
    };
    let name = one.map(|n| cluster.machine(n)).unwrap_or_default();
    nodes.iter().filter(|n| n.name == name).cloned().collect()
}

fn render(ctx: &Ctx, cluster: &Cluster, args: &Args, nodes: &[NodeStatus]) -> Result<String> {
    let list = chosen(cluster, args, nodes);
    if let Some(format) = &args.format {
        let texts: Result<String, String> =
            list.iter().map(|n| template::render(format, &|field| n.field(field))).collect();
        return texts.map_err(|e| {
            Fault::new(Reason::Usage, format!("--format: {e}"))
                .advice("Fields: .Name .Host .Kubelet .APIServer .Kubeconfig .Worker .IP .Primary .VirtualIP .VirtualIPHolder")
                .into()
        });
    }
    Ok(match (args.output, args.layout) {
        (Output::Json, Layout::Nodes) => status::nodes_json(&list),
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
