//! `dashboard`: enables the addon, and lets a browser of this host reach it by way of the API server.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result};
use bootstrap::addons::catalogue;
use k8s_openapi::api::apps::v1::Deployment;
use kube::Client;
use kube::api::Api;
use model::{Fault, Reason};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use super::{addons, cluster as common, kubectl, print};
use crate::ctx::Ctx;
use crate::state::lock::ProfileLock;
use crate::state::profile;

const NAME: &str = "kubernetes-dashboard";
const PATIENCE: Duration = Duration::from_secs(180);
const LOOK: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Print the address only; no browser is opened in either case
    #[arg(long)]
    pub url: bool,
    /// The port on this host; a free one unless said
    #[arg(long, default_value_t = 0, value_name = "PORT")]
    pub port: u16,
}

pub fn run(ctx: &Ctx, args: &Args) -> Result<u8> {
    let version = common::load(ctx)?.kubernetes_version;
    let program = kubectl::program(ctx, &version)?;
    ctx.run(async {
        let client = enable(ctx).await?;
        eprintln!("* Verifying dashboard health ...");
        wait(ctx, &client).await?;
        eprintln!("* Launching proxy ...");
        let words =
            [format!("--context={}", ctx.profile), "proxy".to_owned(), format!("--port={}", args.port)];
        let mut command = Command::new(program);
        command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut proxy = command.spawn().context("start kubectl")?;
        let address = address(&mut proxy).await?;
        let path = format!("api/v1/namespaces/{NAME}/services/http:{NAME}:/proxy/");
        print(&format!("http://{address}/{path}\n"));
        tokio::select! {
            ended = proxy.wait() => Err(failed(format!("kubectl proxy ended: {}", ended?)).into()),
            () = ctx.cancel.cancelled() => Ok(0),
        }
    })
}

/// A client of a cluster that has the dashboard.
async fn enable(ctx: &Ctx) -> Result<Client> {
    let addon = catalogue::find("dashboard").context("the catalogue has a dashboard")?;
    let _lock = ProfileLock::acquire(ctx, &ctx.profile).await?;
    let file = profile::require(&ctx.home, &ctx.profile)?;
    let client = common::healthy_client(ctx, &file.cluster).await?;
    if file.cluster.addons.get(addon.name) != Some(&true) {
        eprintln!("* Enabling dashboard ...");
        addons::switch_on(ctx, &file, addon, &client).await?;
    }
    Ok(client)
}

async fn wait(ctx: &Ctx, client: &Client) -> Result<()> {
    let api: Api<Deployment> = Api::namespaced(client.clone(), NAME);
    let there = async {
        loop {
            let found = api.get_opt(NAME).await.ok().flatten().and_then(|d| d.status);
            if found.and_then(|s| s.available_replicas).is_some_and(|n| n > 0) {
                return;
            }
            tokio::time::sleep(LOOK).await;
        }
    };
    tokio::time::timeout(PATIENCE, there).await.map_err(|_| {
        let message = format!("The dashboard did not come up within {} s", PATIENCE.as_secs());
        let look = format!("{} kubectl -- describe pods -n {NAME}", ctx.tool);
        Fault::new(Reason::ServiceCheckTimeout, message).advice(format!("Look at '{look}'")).into()
    })
}

/// `Starting to serve on 127.0.0.1:8001`.
async fn address(proxy: &mut Child) -> Result<String> {
    let mut line = String::new();
    let output = proxy.stdout.take().context("kubectl has an output")?;
    BufReader::new(output).read_line(&mut line).await.context("read what kubectl says")?;
    let address = line.rsplit(' ').next().map(str::trim).filter(|a| a.contains(':'));
    Ok(address.ok_or_else(|| failed("kubectl proxy did not start".to_owned()))?.to_owned())
}

fn failed(message: String) -> Fault {
    Fault::new(Reason::KubectlProxy, message).advice("Name a free port with --port")
}
