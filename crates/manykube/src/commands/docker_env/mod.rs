//! `docker-env`: how a docker client reaches the Docker engine of a node, for a shell to evaluate.

mod shell;

use std::io::IsTerminal as _;

use anyhow::Result;
use model::{Cluster, Fault, Node, Reason};

use super::{cluster as common, print as show};
use crate::core::{self, containers, docker};
use crate::ctx::Ctx;
use crate::{exit, host};
use shell::Shell;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Format {
    #[default]
    Text,
    Json,
    Yaml,
}

/// How it is printed, and what is done besides.
#[derive(Debug, Clone, clap::Args)]
pub struct View {
    /// bash, zsh, fish, powershell, cmd, tcsh, emacs, none; found out if left out
    #[arg(long)]
    pub shell: Option<String>,
    /// text, json or yaml
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    pub output: Format,
    /// Print what undoes it
    #[arg(short, long)]
    pub unset: bool,
    /// Add the node to NO_PROXY
    #[arg(long)]
    pub no_proxy: bool,
    /// What is built or loaded through it appears on all nodes of the cluster
    #[arg(long)]
    pub all: bool,
    #[arg(long, hide = true)]
    ssh_host: bool,
    #[arg(long, hide = true)]
    ssh_add: bool,
}

#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// The node; the primary one if left out
    #[arg(short, long)]
    pub node: Option<String>,
    #[command(flatten)]
    pub view: View,
}

pub fn run(ctx: &Ctx, args: &Args) -> Result<u8> {
    print(ctx, args.node.as_deref(), &args.view)
}

/// In `eval $(…)` a failure is to be one of the shell, too.
pub fn print(ctx: &Ctx, node: Option<&str>, view: &View) -> Result<u8> {
    let text = text(ctx, node, view);
    match text {
        Ok(text) => {
            show(&text);
            Ok(0)
        }
        Err(error) => {
            if !std::io::stdout().is_terminal() {
                show(&format!(
                    "false exit code {}\n",
                    exit::fault(&error, Reason::Internal).reason.exit_code()
                ));
            }
            Err(error)
        }
    }
}

fn text(ctx: &Ctx, node: Option<&str>, view: &View) -> Result<String> {
    let shell = match view.shell.as_deref() {
        Some(name) => Shell::parse(name).ok_or_else(|| {
            Fault::new(Reason::Usage, format!("There is no shell {name:?} here"))
                .advice(format!("Known are: {}", shell::NAMES.join(", ")))
        })?,
        None => Shell::of_user(host::env("SHELL").as_deref()),
    };
    if view.ssh_host || view.ssh_add {
        let message = "--ssh-host and --ssh-add: the engine is reached by TLS, not by SSH";
        return Err(Fault::new(Reason::Unimplemented, message).into());
    }
    if view.unset {
        return Ok(render(ctx, shell, view, &shell::unset(&host::env, view.no_proxy), "", node));
    }
    let cluster = common::load(ctx)?;
    let node_is = common::node(&cluster, node)?;
    ctx.run(prepare(ctx, &cluster, node_is, view.all))?;
    let certs = ctx.home.certs().display().to_string();
    let variables = shell::variables(&cluster.name, node_is.ip, &certs, view.no_proxy, &host::env);
    let hint = format!("To point your shell to the Docker engine of {}, run:", cluster.machine(node_is));
    Ok(render(ctx, shell, view, &variables, &hint, node))
}

async fn prepare(ctx: &Ctx, cluster: &Cluster, node: &Node, all: bool) -> Result<()> {
    let seen = core::observe(ctx, cluster).await?;
    let index = cluster.nodes.iter().position(|n| n == node);
    if let Some(seen) = index.and_then(|i| seen.get(i)).filter(|s| s.host != model::status::Host::Running) {
        return Err(common::node_not_running(cluster, node, seen.host).into());
    }
    docker::ensure(ctx, cluster, node).await?;
    if all {
        containers::follow::begin(&ctx.home, &cluster.name, &cluster.machine(node))?;
    }
    Ok(())
}

fn render(
    ctx: &Ctx,
    shell: Shell,
    view: &View,
    variables: &[(String, Option<String>)],
    hint: &str,
    node: Option<&str>,
) -> String {
    let set = || variables.iter().filter_map(|(k, v)| Some((k.clone(), v.clone()?)));
    match view.output {
        Format::Json => {
            let map: serde_json::Map<_, _> = set().map(|(k, v)| (k, v.into())).collect();
            format!("{}\n", serde_json::Value::Object(map))
        }
        Format::Yaml => set().map(|(k, v)| format!("{k}: {v:?}\n")).collect(),
        Format::Text => {
            let mut text: String = variables.iter().map(|(k, v)| shell.line(k, v.as_deref())).collect();
            if !hint.is_empty() {
                let node = node.map(|n| format!(" -n {n}")).unwrap_or_default();
                let all = if view.all { " --all" } else { "" };
                let command = format!("{} -p {} docker-env{node}{all}", ctx.tool, ctx.profile);
                text += &shell.hint(hint, &command);
            }
            text
        }
    }
}
