//! `dashboard`: enables the addon, and lets a browser of this host reach it by way of the API server.

mod proxy;

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result};
use bootstrap::addons::catalogue;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Client;
use kube::api::{Api, PostParams};
use model::{Fault, Reason};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use self::proxy::Proxy;
use super::{addons, cluster as common, kubectl, print};
use crate::ctx::Ctx;
use crate::state::lock::ProfileLock;
use crate::state::profile;

const NAME: &str = "kubernetes-dashboard";
const ADMIN: &str = "kubernetes-dashboard-admin";
/// Of a token.
const LIFE: Duration = Duration::from_secs(4 * 3600);
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
        let token = token(&client).await?;
        eprintln!("* Launching proxy ...");
        // For us alone: what comes out of it is an administrator's.
        let dir = tempfile::Builder::new().prefix("manykube-").tempdir();
        let dir = dir.or_else(|_| tempfile::tempdir_in(ctx.home.profile(&ctx.profile)))?;
        let socket = dir.path().join("kubectl.sock");
        let path = format!("/api/v1/namespaces/{NAME}/services/http:{NAME}:/proxy/");
        let mut command = Command::new(program);
        command.arg(format!("--context={}", ctx.profile)).arg("proxy");
        command.arg(format!("--unix-socket={}", socket.display())).arg(format!("--accept-paths=^{path}"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut kubectl = command.spawn().context("start kubectl")?;
        serves(&mut kubectl).await?;
        let proxy = Proxy::open(args.port, &path, &socket).await.map_err(|e| failed(format!("{e:#}")))?;
        let hours = LIFE.as_secs() / 3600;
        eprintln!(
            "* This address is for you alone. Log in with this token, which ends in {hours} hours: {token}"
        );
        print(&format!("{}\n", proxy.url()?));
        tokio::select! {
            ended = kubectl.wait() => Err(failed(format!("kubectl proxy ended: {}", ended?)).into()),
            served = proxy.serve() => served.map(|()| 0),
            () = ctx.cancel.cancelled() => Ok(0),
        }
    })
}

/// Of an account that may do all. The dashboard's own may not: every pod of the cluster can ask it.
async fn token(client: &Client) -> Result<String> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), NAME);
    let life = i64::try_from(LIFE.as_secs()).ok();
    let spec = TokenRequestSpec { expiration_seconds: life, ..TokenRequestSpec::default() };
    let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
    let made = accounts.create_token_request(ADMIN, &PostParams::default(), &request).await;
    let status = made.context("make a token for the dashboard")?.status;
    status.and_then(|status| status.token).context("the API server gave no token")
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

/// It says `Starting to serve on …`.
async fn serves(kubectl: &mut Child) -> Result<()> {
    let mut line = String::new();
    let output = kubectl.stdout.take().context("kubectl has an output")?;
    BufReader::new(output).read_line(&mut line).await.context("read what kubectl says")?;
    anyhow::ensure!(!line.is_empty(), failed("kubectl proxy did not start".to_owned()));
    Ok(())
}

fn failed(message: String) -> Fault {
    Fault::new(Reason::KubectlProxy, message).advice("Name a free port with --port")
}
