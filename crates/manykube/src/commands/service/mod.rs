//! `service`: where the host reaches the services of a cluster.

mod list;
mod url;

use std::time::{Duration, Instant};

use anyhow::Result;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};
use model::{Cluster, Fault, Reason};

use super::{cluster as common, print};
use crate::ctx::Ctx;
use crate::table;
pub use list::{FORMAT, HEADERS, failed};
pub use url::{Ports, check as check_format};

#[derive(Debug, Clone, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    pub command: Option<Command>,
    /// The services
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// All services of the namespace that can be reached
    #[arg(long)]
    pub all: bool,
    /// The namespace
    #[arg(short, long, default_value = "default")]
    pub namespace: String,
    /// Print the addresses only
    #[arg(long)]
    pub url: bool,
    /// https:// instead of http://
    #[arg(long)]
    pub https: bool,
    /// How many seconds to wait for a service that is not there or has no pod yet
    #[arg(long, default_value_t = 2, value_name = "SECONDS")]
    pub wait: u32,
    /// Seconds between two looks
    #[arg(long, default_value_t = 1, value_name = "SECONDS")]
    pub interval: u32,
    /// A Go template: {{.IP}} {{.Port}} {{.Name}}
    #[arg(long, default_value = FORMAT, value_name = "TEMPLATE")]
    pub format: String,
}

#[derive(Debug, Clone, clap::Subcommand)]
pub enum Command {
    /// List services and where they are reached
    List(list::Args),
}

pub fn run(ctx: &Ctx, args: &Args) -> Result<u8> {
    if let Some(Command::List(args)) = &args.command {
        return list::run(ctx, args);
    }
    if args.names.is_empty() && !args.all {
        let message = "You must specify service name(s) or --all flag";
        return Err(Fault::new(Reason::Usage, message).into());
    }
    // A wrong template is wrong whatever the cluster has.
    url::check(&args.format)?;
    let cluster = common::load(ctx)?;
    ctx.run(show(ctx, args, &cluster))
}

async fn show(ctx: &Ctx, args: &Args, cluster: &Cluster) -> Result<u8> {
    let client = common::healthy_client(ctx, cluster).await?;
    let ip = common::node(cluster, None)?.ip;
    let names = if args.all { reachable(&client, &args.namespace).await? } else { args.names.clone() };
    let mut unreachable = None;
    for name in &names {
        let service = find(ctx, args, &client, name).await?;
        let ports = Ports::of(&service);
        if ports.nodes.is_empty() {
            let fault = Fault::new(
                Reason::ServiceUnreachable,
                format!("service {}/{name} has no node port", args.namespace),
            );
            return Err(fault
                .advice(format!("Run 'kubectl port-forward -n {} service/{name} 8080:PORT'", args.namespace))
                .into());
        }
        let urls = ports.urls(ip, &args.format, args.https, name)?;
        if args.url {
            print(&urls.iter().map(|u| format!("{u}\n")).collect::<String>());
        } else {
            let row = vec![args.namespace.clone(), name.clone(), ports.names().join("\n"), urls.join("\n")];
            print(&table::render(&list::HEADERS, &[row]));
        }
        if !has_pod(args, &client, &service).await? {
            unreachable.get_or_insert(name);
        }
    }
    match unreachable {
        None => Ok(0),
        Some(name) => Err(Fault::new(
            Reason::ServiceUnreachable,
            format!("service not available: no running pod for service {name} found"),
        )
        .advice(format!("Look at '{} kubectl -- get pods -n {}'", ctx.tool, args.namespace))
        .into()),
    }
}

async fn reachable(client: &Client, namespace: &str) -> Result<Vec<String>> {
    let all = list::services(client, Some(namespace)).await?;
    Ok(all.iter().filter(|s| !Ports::of(s).nodes.is_empty()).map(ResourceExt::name_any).collect())
}

/// Waits a little for one that somebody has only just applied.
async fn find(ctx: &Ctx, args: &Args, client: &Client, name: &str) -> Result<Service> {
    let api: Api<Service> = Api::namespaced(client.clone(), &args.namespace);
    let began = Instant::now();
    loop {
        match api.get_opt(name).await.map_err(list::failed)? {
            Some(service) => return Ok(service),
            None if began.elapsed() < seconds(args.wait) => {
                tokio::time::sleep(seconds(args.interval.max(1))).await
            }
            None => {
                let message = format!("Service '{name}' was not found in '{}' namespace.", args.namespace);
                return Err(Fault::new(Reason::ServiceNotFound, message)
                    .advice(format!(
                        "Name another namespace with -n, or list all services with '{}'",
                        ctx.hint("service list")
                    ))
                    .into());
            }
        }
    }
}

async fn has_pod(args: &Args, client: &Client, service: &Service) -> Result<bool> {
    let selector = service.spec.as_ref().and_then(|s| s.selector.clone()).unwrap_or_default();
    if selector.is_empty() {
        // Somebody else fills its endpoints.
        return Ok(true);
    }
    let labels: Vec<String> = selector.iter().map(|(k, v)| format!("{k}={v}")).collect();
    let api: Api<Pod> = Api::namespaced(client.clone(), &args.namespace);
    let params = ListParams::default().labels(&labels.join(","));
    let running = |p: &Pod| p.status.as_ref().is_some_and(|s| s.phase.as_deref() == Some("Running"));
    let began = Instant::now();
    loop {
        if api.list(&params).await.map_err(list::failed)?.items.iter().any(running) {
            return Ok(true);
        }
        if began.elapsed() >= seconds(args.wait) {
            return Ok(false);
        }
        tokio::time::sleep(seconds(args.interval.max(1))).await;
    }
}

fn seconds(n: u32) -> Duration {
    Duration::from_secs(u64::from(n))
}
