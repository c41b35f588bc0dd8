//! The Services of type LoadBalancer, as the API has them.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use anyhow::{Context, Result};
use futures::TryStreamExt;
use k8s_openapi::api::core::v1::Service;
use kube::api::{Api, ListParams, Patch, PatchParams, WatchEvent, WatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config, ResourceExt};
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::pool::Wanted;

/// The cluster's administrator's, made by kubeadm on every control plane.
const ADMIN: &str = "/etc/kubernetes/admin.conf";
const LOAD_BALANCERS: &str = "spec.type=LoadBalancer";
/// An API server that went away without a word is noticed after this long: then the list is made anew.
const WATCH_SECONDS: u32 = 30;
const CONNECT: Duration = Duration::from_secs(2);
const WRITE: Duration = Duration::from_secs(5);
const AGAIN: Duration = Duration::from_secs(2);

#[derive(Clone)]
pub struct Services {
    api: SocketAddrV4,
}

/// By `namespace/name`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Known(BTreeMap<String, Service>);

impl Known {
    /// One with a class of its own is another load balancer's.
    fn ours(&self) -> impl Iterator<Item = (&String, &Service)> {
        let classless = |s: &Service| s.spec.as_ref().is_some_and(|s| s.load_balancer_class.is_none());
        self.0.iter().filter(move |(_, s)| classless(s) && s.metadata.deletion_timestamp.is_none())
    }

    pub fn wanted(&self) -> Vec<Wanted> {
        self.ours().map(|(name, service)| wanted(name, service)).collect()
    }

    /// Whose status does not say yet what was given: an address, or none any more.
    pub fn to_tell<'a>(
        &'a self,
        given: &'a BTreeMap<String, Ipv4Addr>,
    ) -> impl Iterator<Item = (&'a str, Option<Ipv4Addr>)> {
        self.ours().filter_map(|(name, service)| {
            let ip = given.get(name).copied();
            let says = addresses(service);
            (says != ip.into_iter().collect::<Vec<_>>()).then_some((name.as_str(), ip))
        })
    }
}

fn wanted(name: &str, service: &Service) -> Wanted {
    let made = service.creation_timestamp().map(|t| t.0.to_string()).unwrap_or_default();
    let asked = service.spec.as_ref().and_then(|s| s.load_balancer_ip.as_ref());
    Wanted {
        service: name.to_owned(),
        age: (made, service.uid().unwrap_or_default()),
        has: addresses(service),
        asked: asked.and_then(|ip| ip.parse().ok()),
    }
}

fn addresses(service: &Service) -> Vec<Ipv4Addr> {
    let ingress = service.status.as_ref().and_then(|s| s.load_balancer.as_ref()?.ingress.as_ref());
    ingress.into_iter().flatten().filter_map(|i| i.ip.as_ref()?.parse().ok()).collect()
}

fn key(service: &Service) -> String {
    format!("{}/{}", service.namespace().unwrap_or_default(), service.name_any())
}

impl Services {
    pub fn new(api: SocketAddrV4) -> Services {
        Services { api }
    }

    /// Forever. What was seen last stays while the API does not answer.
    pub async fn follow(&self, known: watch::Sender<Option<Known>>) {
        loop {
            match self.list_and_watch(&known).await {
                Ok(()) => {}
                Err(e) => {
                    tracing::debug!("load balancer: {e:#}");
                    sleep(AGAIN).await;
                }
            }
        }
    }

    /// Ends when the watch does.
    async fn list_and_watch(&self, known: &watch::Sender<Option<Known>>) -> Result<()> {
        let api: Api<Service> = Api::all(self.client().await?);
        let list = api.list(&ListParams::default().fields(LOAD_BALANCERS)).await.context("list services")?;
        let version = list.metadata.resource_version.clone().unwrap_or_default();
        let mut seen = Known(list.items.into_iter().map(|s| (key(&s), s)).collect());
        publish(known, &seen);
        let params = WatchParams::default().fields(LOAD_BALANCERS).timeout(WATCH_SECONDS);
        let stream = api.watch(&params, &version).await.context("watch services")?;
        let mut stream = std::pin::pin!(stream);
        while let Some(event) = stream.try_next().await.context("watch services")? {
            match event {
                WatchEvent::Added(s) | WatchEvent::Modified(s) => drop(seen.0.insert(key(&s), s)),
                WatchEvent::Deleted(s) => drop(seen.0.remove(&key(&s))),
                WatchEvent::Bookmark(_) => {}
                WatchEvent::Error(e) => anyhow::bail!("watch services: {e}"),
            }
            publish(known, &seen);
        }
        Ok(())
    }

    /// Any API server will do: the rules of this node spread connections to the virtual address.
    async fn client(&self) -> Result<Client> {
        // Two crates of the process may name different providers; the first call decides.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let admin = Kubeconfig::read_from(ADMIN).context("read the administrator's identity")?;
        let mut config = Config::from_custom_kubeconfig(admin, &KubeConfigOptions::default()).await?;
        config.cluster_url = format!("https://{}", self.api).parse()?;
        config.connect_timeout = Some(CONNECT);
        config.read_timeout = Some(Duration::from_secs(u64::from(WATCH_SECONDS) + 5));
        Ok(Client::try_from(config)?)
    }

    /// Writes an address into a Service, or takes it out.
    pub async fn tell(&self, service: &str, ip: Option<Ipv4Addr>) -> Result<()> {
        let (namespace, name) = service.split_once('/').context("a service without namespace")?;
        let api: Api<Service> = Api::namespaced(self.client().await?, namespace);
        let ingress: Vec<_> = ip.iter().map(|ip| json!({ "ip": ip.to_string(), "ipMode": "VIP" })).collect();
        let status = json!({ "status": { "loadBalancer": { "ingress": ingress } } });
        let (params, patch) = (PatchParams::default(), Patch::Merge(&status));
        let patched = api.patch_status(name, &params, &patch);
        timeout(WRITE, patched)
            .await
            .context("the API does not answer")?
            .context("write its status")
            .map(drop)
    }
}

fn publish(known: &watch::Sender<Option<Known>>, seen: &Known) {
    known.send_if_modified(|known| {
        let changed = known.as_ref() != Some(seen);
        *known = Some(seen.clone());
        changed
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(list: serde_json::Value) -> Known {
        let list: Vec<Service> = serde_json::from_value(list).expect("services");
        Known(list.into_iter().map(|s| (key(&s), s)).collect())
    }

    #[test]
    fn only_what_differs_is_written() {
        let known = known(json!([
            { "metadata": { "name": "a", "namespace": "x" }, "spec": { "type": "LoadBalancer" },
              "status": { "loadBalancer": { "ingress": [{ "ip": "192.168.49.200" }] } } },
            { "metadata": { "name": "b", "namespace": "x" }, "spec": { "type": "LoadBalancer", "loadBalancerIP": "192.168.49.210" } },
            { "metadata": { "name": "c", "namespace": "x" }, "spec": { "type": "LoadBalancer", "loadBalancerClass": "other/one" } },
        ]));
        let wanted = known.wanted();
        assert_eq!(wanted.iter().map(|w| w.service.as_str()).collect::<Vec<_>>(), ["x/a", "x/b"]);
        assert_eq!(wanted[1].asked, Some(Ipv4Addr::new(192, 168, 49, 210)));
        let given =
            [("x/a", 200), ("x/b", 210)].map(|(n, l)| (n.to_owned(), Ipv4Addr::new(192, 168, 49, l))).into();
        let told: Vec<_> = known.to_tell(&given).collect();
        assert_eq!(told, [("x/b", Some(Ipv4Addr::new(192, 168, 49, 210)))]);
        let none = BTreeMap::new();
        assert_eq!(known.to_tell(&none).collect::<Vec<_>>(), [("x/a", None)]);
    }
}
