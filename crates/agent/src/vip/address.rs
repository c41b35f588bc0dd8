//! The virtual address in this node's kernel.
//!
//! It lies on the loopback link of every control plane, so that what arrives for it is taken. Which
//! of them it arrives at is decided by who answers ARP for it: the election alone (the kernel
//! answers only for addresses of the link that it is asked on, see `sysctl`). So taking the address
//! and giving it up need no rtnetlink, which waits while many links come and go.

use std::net::Ipv4Addr;

use anyhow::{Context, Result};
use ipnet::Ipv4Net;
use netlink::Netlink;

const LOOPBACK: &str = "lo";

pub async fn place(vip: Ipv4Addr) -> Result<()> {
    let net = Netlink::open()?;
    net.add_host_address(index(&net, LOOPBACK).await?, Ipv4Net::from(vip)).await
}

/// The kernel answers for it no more, where it was the only control plane's so far. To be called when
/// the address is placed: connections live on, because it is never on none of both.
pub async fn take_off(link: &str, vip: Ipv4Addr) -> Result<()> {
    let net = Netlink::open()?;
    net.remove_address(index(&net, link).await?, Ipv4Net::from(vip)).await
}

pub async fn remove(vip: Ipv4Addr) -> Result<()> {
    let net = Netlink::open()?;
    net.remove_address(index(&net, LOOPBACK).await?, Ipv4Net::from(vip)).await
}

async fn index(net: &Netlink, link: &str) -> Result<u32> {
    Ok(net.link(link).await?.with_context(|| format!("there is no {link}"))?.index)
}
