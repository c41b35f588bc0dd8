use std::net::Ipv4Addr;

use anyhow::{Context, Result};
use futures::TryStreamExt;
use ipnet::Ipv4Net;
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::address::{AddressAttribute, AddressScope, CacheInfo};
use rtnetlink::packet_route::link::{InfoData, InfoKind, InfoVeth, LinkAttribute, LinkInfo, LinkMessage};
use rtnetlink::{AddressMessageBuilder, LinkBridge, LinkMessageBuilder, LinkUnspec, LinkVeth};

use crate::{EADDRNOTAVAIL, EEXIST, ENODEV, Netlink, errno};

/// A network interface, as far as we care.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    pub index: u32,
    pub name: String,
    /// The bridge that it is plugged into.
    pub controller: Option<u32>,
    pub is_bridge: bool,
}

/// A cable between a bridge here and a namespace elsewhere.
pub struct Veth<'a> {
    pub host_name: &'a str,
    pub bridge: u32,
    /// The end in the node: name, MAC address, and a process of the namespace it goes to.
    pub peer_name: &'a str,
    pub peer_mac: [u8; 6],
    pub peer_pid: u32,
    pub mtu: u32,
}

impl Netlink {
    pub async fn links(&self) -> Result<Vec<Link>> {
        let found: Vec<LinkMessage> =
            self.handle.link().get().execute().try_collect().await.context("list network links")?;
        Ok(found.into_iter().filter_map(named).collect())
    }

    pub async fn link(&self, name: &str) -> Result<Option<Link>> {
        let mut found = self.handle.link().get().match_name(name).execute();
        match found.try_next().await {
            Ok(message) => Ok(message.and_then(named)),
            Err(e) if errno(&e) == Some(ENODEV) => Ok(None),
            Err(e) => Err(e).with_context(|| format!("look up link {name}")),
        }
    }

    /// The link's hardware address.
    pub async fn mac(&self, name: &str) -> Result<[u8; 6]> {
        let mut found = self.handle.link().get().match_name(name).execute();
        let message = found.try_next().await.with_context(|| format!("look up link {name}"))?;
        let address = message.iter().flat_map(|m| &m.attributes).find_map(|a| match a {
            LinkAttribute::Address(bytes) => <[u8; 6]>::try_from(bytes.as_slice()).ok(),
            _ => None,
        });
        address.with_context(|| format!("link {name} has no hardware address"))
    }

    /// Makes the bridge if it is not there, and switches it on.
    pub async fn bridge(&self, name: &str, mac: [u8; 6]) -> Result<Link> {
        let bridge = LinkBridge::new(name).address(mac.to_vec()).build();
        let made = self.handle.link().add(bridge).execute().await;
        let is_old = made.as_ref().is_err_and(|e| errno(e) == Some(EEXIST));
        if !is_old {
            made.with_context(|| format!("make bridge {name}"))?;
        }
        let link = self.link(name).await?.with_context(|| format!("bridge {name} vanished"))?;
        refuse_ipv6(name)?;
        self.up(link.index).await?;
        if is_old {
            self.keep_mac(&link).await?;
        }
        Ok(link)
    }

    /// A bridge whose hardware address was never set takes the lowest of its ports, so that it changes as they come
    /// and go, and nodes answer to the old one until their kernels ask again: for half a minute.
    async fn keep_mac(&self, bridge: &Link) -> Result<()> {
        self.set_mac(bridge.index, self.mac(&bridge.name).await?).await
    }

    pub async fn set_mac(&self, index: u32, mac: [u8; 6]) -> Result<()> {
        let message = LinkMessageBuilder::<LinkUnspec>::new().index(index).address(mac.to_vec()).build();
        let set = self.handle.link().set(message).execute().await;
        set.with_context(|| format!("set the hardware address of link {index}"))
    }

    /// Both ends in one request, so that a crash never leaves half a cable.
    pub async fn veth(&self, veth: &Veth<'_>) -> Result<()> {
        let peer = LinkMessageBuilder::<LinkUnspec>::new()
            .name(veth.peer_name.to_owned())
            .address(veth.peer_mac.to_vec())
            .mtu(veth.mtu)
            .setns_by_pid(veth.peer_pid)
            .build();
        let message = LinkVeth::new(veth.host_name, veth.peer_name)
            .set_info_data(InfoData::Veth(InfoVeth::Peer(peer)))
            .mtu(veth.mtu)
            .controller(veth.bridge)
            .up()
            .build();
        self.handle
            .link()
            .add(message)
            .execute()
            .await
            .with_context(|| format!("make link {} to process {}", veth.host_name, veth.peer_pid))
    }

    /// Plugs a link into a bridge; one that is in it stays.
    pub async fn set_controller(&self, index: u32, bridge: u32) -> Result<()> {
        let message = LinkMessageBuilder::<LinkUnspec>::new().index(index).controller(bridge).up().build();
        let set = self.handle.link().set(message).execute().await;
        set.with_context(|| format!("plug link {index} into bridge {bridge}"))
    }

    pub async fn up(&self, index: u32) -> Result<()> {
        let message = LinkMessageBuilder::<LinkUnspec>::new().index(index).up().build();
        self.handle.link().set(message).execute().await.with_context(|| format!("switch link {index} on"))
    }

    /// Removes the link; one that is not there is removed already.
    pub async fn remove_link(&self, name: &str) -> Result<()> {
        let Some(link) = self.link(name).await? else { return Ok(()) };
        match self.handle.link().del(link.index).execute().await {
            Err(e) if errno(&e) != Some(ENODEV) => Err(e).with_context(|| format!("remove link {name}")),
            _ => Ok(()),
        }
    }

    pub async fn add_address(&self, index: u32, address: Ipv4Net) -> Result<()> {
        self.add_scoped(index, address, AddressScope::Universe).await
    }

    /// One that is taken but never sent from, unless to itself.
    pub async fn add_host_address(&self, index: u32, address: Ipv4Net) -> Result<()> {
        self.add_scoped(index, address, AddressScope::Host).await
    }

    async fn add_scoped(&self, index: u32, address: Ipv4Net, scope: AddressScope) -> Result<()> {
        let mut request = self.handle.address().add(index, address.addr().into(), address.prefix_len());
        request.message_mut().header.scope = scope;
        match request.execute().await {
            Err(e) if errno(&e) != Some(EEXIST) => {
                Err(e).with_context(|| format!("add address {address} to link {index}"))
            }
            _ => Ok(()),
        }
    }

    /// Adds the address or renews it. With a `lifetime` the kernel removes it by itself when nobody
    /// has renewed it for so many seconds.
    pub async fn hold_address(&self, index: u32, address: Ipv4Net, lifetime: Option<u32>) -> Result<()> {
        let ip = address.addr().into();
        let mut request = self.handle.address().add(index, ip, address.prefix_len()).replace();
        let mut times = CacheInfo::default();
        times.ifa_valid = lifetime.unwrap_or(u32::MAX);
        times.ifa_preferred = times.ifa_valid;
        request.message_mut().attributes.push(AddressAttribute::CacheInfo(times));
        request.execute().await.with_context(|| format!("hold address {address} on link {index}"))
    }

    /// Removes the address; one that is not there is removed already.
    pub async fn remove_address(&self, index: u32, address: Ipv4Net) -> Result<()> {
        let message = AddressMessageBuilder::<Ipv4Addr>::new()
            .index(index)
            .address(address.addr(), address.prefix_len())
            .build();
        match self.handle.address().del(message).execute().await {
            Err(e) if errno(&e) != Some(EADDRNOTAVAIL) => {
                Err(e).with_context(|| format!("remove address {address} from link {index}"))
            }
            _ => Ok(()),
        }
    }

    /// All IPv4 addresses with their prefix, and the index of the link that has them.
    pub async fn addresses(&self) -> Result<Vec<(u32, Ipv4Net)>> {
        let found: Vec<_> =
            self.handle.address().get().execute().try_collect().await.context("list addresses")?;
        let ipv4 = found.into_iter().filter(|m| m.header.family == AddressFamily::Inet);
        Ok(ipv4
            .filter_map(|m| {
                let ip: Ipv4Addr = m.attributes.iter().find_map(|a| match a {
                    AddressAttribute::Local(std::net::IpAddr::V4(ip)) => Some(*ip),
                    _ => None,
                })?;
                Some((m.header.index, Ipv4Net::new(ip, m.header.prefix_len).ok()?))
            })
            .collect())
    }
}

/// Of this thread's network namespace: what is beyond the link does not become the host's router by saying so (CVE-2020-13401).
pub fn refuse_ipv6(link: &str) -> Result<()> {
    for (setting, value) in [("accept_ra", "0"), ("autoconf", "0"), ("disable_ipv6", "1")] {
        let path = format!("/proc/sys/net/ipv6/conf/{link}/{setting}");
        // A kernel without the setting has no IPv6.
        let Ok(now) = std::fs::read_to_string(&path) else { continue };
        if now.trim() != value {
            std::fs::write(&path, value).with_context(|| format!("write {value} to {path}"))?;
        }
    }
    Ok(())
}

fn named(message: LinkMessage) -> Option<Link> {
    let name = message.attributes.iter().find_map(|a| match a {
        LinkAttribute::IfName(name) => Some(name.clone()),
        _ => None,
    })?;
    let controller = message.attributes.iter().find_map(|a| match a {
        LinkAttribute::Controller(index) => Some(*index).filter(|i| *i != 0),
        _ => None,
    });
    let is_bridge = message.attributes.iter().any(|a| match a {
        LinkAttribute::LinkInfo(all) => all.contains(&LinkInfo::Kind(InfoKind::Bridge)),
        _ => false,
    });
    Some(Link { index: message.header.index, name, controller, is_bridge })
}
