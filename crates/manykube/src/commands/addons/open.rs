//! `addons open`: where the host reaches what an addon serves.

use anyhow::Result;
use k8s_openapi::api::core::v1::Service;
use kube::ResourceExt as _;
use kube::api::{Api, ListParams};
use model::{Fault, Reason};

use super::{common, find, print};
use crate::commands::service::{self, Ports};
use crate::ctx::Ctx;
use crate::table;

/// The services of an addon that are meant to be looked at bear its name, as in minikube.
const LABEL: &str = "kubernetes.io/minikube-addons-endpoint";

#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Print the addresses only
    #[arg(long)]
    pub url: bool,
    /// https:// instead of http://
    #[arg(long)]
    pub https: bool,
    /// A Go template: {{.IP}} {{.Port}} {{.Name}}
    #[arg(long, default_value = service::FORMAT, value_name = "TEMPLATE")]
    pub format: String,
    // Nothing here takes so long that it would have to be waited for.
    #[arg(long, hide = true, default_value_t = 2)]
    wait: u32,
    #[arg(long, hide = true, default_value_t = 1)]
    interval: u32,
}

pub fn run(ctx: &Ctx, args: &Args) -> Result<u8> {
    let addon = find(&args.name, Reason::AddonUnsupported)?;
    service::check_format(&args.format)?;
    let cluster = common::load(ctx)?;
    let ip = common::node(&cluster, None)?.ip;
    let services = ctx.run(async {
        let client = common::healthy_client(ctx, &cluster).await?;
        if cluster.addons.get(addon.name) != Some(&true) {
            let message = format!("addon '{}' is currently not enabled.", addon.name);
            return Err(Fault::new(Reason::AddonNotEnabled, message)
                .advice(format!("Run '{}'", ctx.hint(&format!("addons enable {}", addon.name))))
                .into());
        }
        let params = ListParams::default().labels(&format!("{LABEL}={}", addon.name));
        let api: Api<Service> = Api::all(client);
        Ok(api.list(&params).await.map_err(service::failed)?.items)
    })?;
    let mut rows = Vec::new();
    for service in &services {
        let (name, ports) = (service.name_any(), Ports::of(service));
        let urls = ports.urls(ip, &args.format, args.https, &name)?;
        let names = ports.names();
        rows.push((
            vec![service.namespace().unwrap_or_default(), name, names.join("\n"), urls.join("\n")],
            urls,
        ));
    }
    if rows.iter().all(|(_, urls)| urls.is_empty()) {
        let message = format!(
            "This addon does not have an endpoint defined for the 'addons open' command: {}",
            addon.name
        );
        return Err(Fault::new(Reason::ServiceNotFound, message)
            .advice(format!("Look at '{}'", ctx.hint("service list")))
            .into());
    }
    if args.url {
        print(&rows.iter().flat_map(|(_, urls)| urls).map(|url| format!("{url}\n")).collect::<String>());
    } else {
        let rows: Vec<Vec<String>> = rows.into_iter().map(|(row, _)| row).collect();
        print(&table::render(&service::HEADERS, &rows));
    }
    Ok(0)
}
