use std::net::Ipv4Addr;

use anyhow::{Context, Result};
use futures::TryStreamExt;
use ipnet::Ipv4Net;
use rtnetlink::RouteMessageBuilder;
use rtnetlink::packet_route::route::{RouteAddress, RouteAttribute, RouteMessage, RouteProtocol, RouteType};

use crate::{EEXIST, ESRCH, Netlink, errno};

/// Weaker than any route somebody else may add for the same network.
const LAST_RESORT: u32 = u32::MAX - 1;

/// A network behind a neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Via {
    pub net: Ipv4Net,
    pub gateway: Ipv4Addr,
    /// The link that leads to the neighbour.
    pub link: u32,
}

/// Who made a route, as the kernel keeps it (`ip route … proto N`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner(pub u8);

impl Netlink {
    /// Adds the route. One to the same network that somebody else made is left as it is.
    pub async fn add_route(&self, owner: Owner, via: Via) -> Result<()> {
        self.add(message(owner, via)).await.with_context(|| format!("route {} by {}", via.net, via.gateway))
    }

    /// Removes the route; one that is not there is removed already.
    pub async fn remove_route(&self, owner: Owner, via: Via) -> Result<()> {
        match self.handle.route().del(message(owner, via)).execute().await {
            Err(e) if errno(&e) != Some(ESRCH) => {
                Err(e).with_context(|| format!("remove the route to {} by {}", via.net, via.gateway))
            }
            _ => Ok(()),
        }
    }

    /// The routes that this owner made.
    pub async fn routes_of(&self, owner: Owner) -> Result<Vec<Via>> {
        let all = RouteMessageBuilder::<Ipv4Addr>::new().build();
        let found: Vec<RouteMessage> =
            self.handle.route().get(all).execute().try_collect().await.context("list routes")?;
        let ours = found.iter().filter(|m| m.header.protocol == RouteProtocol::from(owner.0));
        Ok(ours.filter_map(via).collect())
    }

    pub async fn default_route(&self, index: u32, gateway: Ipv4Addr) -> Result<()> {
        let route = RouteMessageBuilder::<Ipv4Addr>::new().gateway(gateway).output_interface(index).build();
        self.add(route).await.with_context(|| format!("add the default route by {gateway}"))
    }

    /// Whatever no better route takes is refused here instead of going out by the default route.
    pub async fn add_unreachable(&self, net: Ipv4Net) -> Result<()> {
        self.add(unreachable(net)).await.with_context(|| format!("make {net} unreachable"))
    }

    pub async fn remove_unreachable(&self, net: Ipv4Net) -> Result<()> {
        match self.handle.route().del(unreachable(net)).execute().await {
            Err(e) if errno(&e) != Some(ESRCH) => {
                Err(e).with_context(|| format!("remove the unreachable route of {net}"))
            }
            _ => Ok(()),
        }
    }

    /// Every IPv4 network that has a route other than the default one.
    pub async fn routed(&self) -> Result<Vec<(Ipv4Net, bool)>> {
        let all = RouteMessageBuilder::<Ipv4Addr>::new().build();
        let found: Vec<RouteMessage> =
            self.handle.route().get(all).execute().try_collect().await.context("list routes")?;
        Ok(found
            .iter()
            .filter_map(|m| {
                let to = m.attributes.iter().find_map(|a| match a {
                    RouteAttribute::Destination(RouteAddress::Inet(ip)) => Some(*ip),
                    _ => None,
                })?;
                let net = Ipv4Net::new(to, m.header.destination_prefix_length).ok()?;
                Some((net, m.header.kind == RouteType::Unreachable))
            })
            .collect())
    }

    async fn add(&self, route: RouteMessage) -> Result<()> {
        match self.handle.route().add(route).execute().await {
            Err(e) if errno(&e) != Some(EEXIST) => Err(e.into()),
            _ => Ok(()),
        }
    }
}

fn unreachable(net: Ipv4Net) -> RouteMessage {
    RouteMessageBuilder::<Ipv4Addr>::new()
        .destination_prefix(net.network(), net.prefix_len())
        .kind(RouteType::Unreachable)
        .priority(LAST_RESORT)
        .build()
}

fn message(owner: Owner, via: Via) -> RouteMessage {
    RouteMessageBuilder::<Ipv4Addr>::new()
        .destination_prefix(via.net.network(), via.net.prefix_len())
        .gateway(via.gateway)
        .output_interface(via.link)
        .protocol(RouteProtocol::from(owner.0))
        .build()
}

fn via(message: &RouteMessage) -> Option<Via> {
    let (mut to, mut gateway, mut link) = (None, None, None);
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Destination(RouteAddress::Inet(ip)) => to = Some(*ip),
            RouteAttribute::Gateway(RouteAddress::Inet(ip)) => gateway = Some(*ip),
            RouteAttribute::Oif(index) => link = Some(*index),
            _ => {}
        }
    }
    let net = Ipv4Net::new(to?, message.header.destination_prefix_length).ok()?;
    Some(Via { net, gateway: gateway?, link: link? })
}
