//! `tunnel`: services of type LoadBalancer have addresses that the host reaches without any tunnel. So this
//! command only reports, in minikube's form, until it is interrupted.

use std::fs::TryLockError;
use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::{Context as _, Result};
use fs_err::os::unix::fs::OpenOptionsExt as _;
use k8s_openapi::api::core::v1::Service;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt as _};
use model::{Cluster, Fault, Reason, address};

use super::{cluster as common, print};
use crate::ctx::Ctx;

const LOOK: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Accepted for minikube's sake: no route is ever left behind
    #[arg(short, long, default_missing_value = "true")]
    pub cleanup: Option<bool>,
    /// Accepted for minikube's sake: addresses are the cluster's own
    #[arg(long, value_name = "IP")]
    pub bind_address: Option<String>,
}

pub fn run(ctx: &Ctx, _args: &Args) -> Result<u8> {
    let cluster = common::load(ctx)?;
    let path = ctx.home.profile(&cluster.name).join(".tunnel_lock");
    ctx.run(async {
        let client = common::healthy_client(ctx, &cluster).await?;
        let mut options = fs_err::OpenOptions::new();
        let lock = options.create(true).append(true).mode(0o600).open(&path)?.into_parts().0;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Fault::new(
                    Reason::TunnelAlreadyRunning,
                    format!("Another tunnel process is already running for the profile \"{}\"", cluster.name),
                )
                .advice("End the other one first: one is enough for all services")
                .into());
            }
            Err(TryLockError::Error(e)) => return Err(e).context("lock the tunnel"),
        }
        let mut last = String::new();
        loop {
            let report = report(&cluster, &services(&client).await);
            if report != last {
                print(&report);
                last = report;
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                () = ctx.cancel.cancelled() => return Ok(0),
            }
        }
    })
}

/// Names with their addresses, or why that is not known.
async fn services(client: &Client) -> Result<Vec<(String, Option<String>)>, String> {
    let api: Api<Service> = Api::all(client.clone());
    let params = ListParams::default().fields("spec.type=LoadBalancer");
    let list = api.list(&params).await.map_err(|e| e.to_string())?;
    let address = |s: &Service| {
        let ingress = s.status.as_ref()?.load_balancer.as_ref()?.ingress.as_ref()?;
        ingress.first()?.ip.clone()
    };
    Ok(list.items.iter().map(|s| (s.name_any(), address(s))).collect())
}

fn report(cluster: &Cluster, services: &Result<Vec<(String, Option<String>)>, String>) -> String {
    let machine = cluster.primary().map(|n| cluster.machine(n)).unwrap_or_default();
    let mut pool: Vec<Ipv4Addr> = pool(cluster).collect();
    pool.retain(|ip| cluster.nodes.iter().all(|n| n.ip != *ip));
    let range = match (pool.first(), pool.last()) {
        (Some(first), Some(last)) => format!("{first}-{last} (node network, no route needed)"),
        _ => "none: nodes have all addresses".to_owned(),
    };
    let (list, problem) = match services {
        Ok(list) => {
            let name = |(name, ip): &(String, Option<String>)| {
                format!("{name} {}", ip.as_deref().unwrap_or("(no address yet)"))
            };
            (list.iter().map(name).collect::<Vec<_>>().join(", "), "no errors")
        }
        Err(e) => (String::new(), e.as_str()),
    };
    format!(
        "Status:\t\n\tmachine: {machine}\n\tpid: {}\n\troute: {range}\n\tminikube: Running\n\tservices: [{list}]\n    errors: \n\t\tminikube: {problem}\n\t\trouter: no errors\n\t\tloadbalancer emulator: no errors\n\n",
        std::process::id()
    )
}

fn pool(cluster: &Cluster) -> impl Iterator<Item = Ipv4Addr> {
    address::load_balancer_pool(cluster.network.subnet, cluster.extras.load_balancers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::start::desired::tests::sample;

    #[test]
    fn the_report_names_services_and_addresses() {
        let list = vec![("web".to_owned(), Some("192.168.49.200".to_owned())), ("db".to_owned(), None)];
        let text = report(&sample("demo"), &Ok(list));
        for line in [
            "\tmachine: demo",
            "\troute: 192.168.49.200-192.168.49.253 (node network, no route needed)",
            "\tservices: [web 192.168.49.200, db (no address yet)]",
            "\t\tminikube: no errors",
        ] {
            assert!(text.lines().any(|l| l == line), "{line:?} in {text}");
        }
        assert!(report(&sample("demo"), &Err("gone".into())).contains("minikube: gone"));
    }
}
