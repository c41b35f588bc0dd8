//! One network per profile, by the profile's name and with its subnet, on a bridge whose name we choose: the
//! guards of the native driver know it by that.

use std::collections::HashMap;

use anyhow::{Context, Result};
use bollard::Docker as Client;
use bollard::errors::Error;
use bollard::models::{Ipam, IpamConfig, Network, NetworkCreateRequest, NetworkInspect};
use bollard::query_parameters::{InspectNetworkOptions, ListNetworksOptions};
use ipnet::Ipv4Net;
use model::address::mac;
use model::{Cluster, Fault, Home, Reason};
use netlink::Netlink;

use super::{CREATED_BY, HOME, NAME, PROFILE, container};
use crate::native::network::{MTU, bridge_name};

const BRIDGE: &str = "com.docker.network.bridge.name";
const SIZE: &str = "com.docker.network.driver.mtu";

pub async fn up(client: &Client, home: &Home, owner: &str, cluster: &Cluster) -> Result<()> {
    match find(client, &cluster.name).await? {
        Some(network) if owner_of(&network) != Some(owner) => {
            return Err(Fault::new(
                Reason::SubnetConflict,
                format!("The engine has a network \"{}\" that is not this cluster's", cluster.name),
            )
            .advice("Remove it, or choose another name with -p")
            .into());
        }
        Some(network) if is_as_wanted(&network, home, cluster) => {
            return reachable(client, home, cluster).await;
        }
        Some(_) => down(client, home, owner, &cluster.name).await?,
        None => {}
    }
    match client.create_network(request(home, owner, cluster)).await {
        Ok(_) => reachable(client, home, cluster).await,
        Err(Error::DockerResponseServerError { message, .. }) if message.contains("overlap") => {
            let subnet = cluster.network.subnet;
            let whose = who_has(client, subnet)
                .await?
                .map_or(message, |name| format!("the engine's network \"{name}\" has it"));
            Err(Fault::new(Reason::SubnetConflict, format!("The subnet {subnet} is in use: {whose}"))
                .advice("Remove the network that uses it, or delete this cluster and start it anew with another --subnet")
                .into())
        }
        Err(e) => Err(e).with_context(|| format!("make the network {}", cluster.name)),
    }
}

fn request(home: &Home, owner: &str, cluster: &Cluster) -> NetworkCreateRequest {
    let name = &cluster.name;
    let owned = |pairs: &[(&str, &str)]| -> HashMap<String, String> {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    };
    // Nobody else's container is given the virtual address.
    let kept = HashMap::from([("virtual".to_owned(), cluster.vip().to_string())]);
    NetworkCreateRequest {
        name: name.clone(),
        driver: Some("bridge".to_owned()),
        ipam: Some(Ipam {
            config: Some(vec![IpamConfig {
                subnet: Some(cluster.network.subnet.to_string()),
                gateway: Some(cluster.gateway().to_string()),
                auxiliary_addresses: Some(kept),
                ..IpamConfig::default()
            }]),
            ..Ipam::default()
        }),
        options: Some(owned(&[(BRIDGE, &bridge_name(home, name)), (SIZE, &MTU.to_string())])),
        labels: Some(owned(&[(CREATED_BY, "true"), (NAME, name), (PROFILE, name), (HOME, owner)])),
        ..NetworkCreateRequest::default()
    }
}

/// Is the engine's bridge here? It is not where the engine runs elsewhere, or in a namespace of its own. An engine
/// that does not tell which bridge a network has makes it with the first container, and takes one that is there.
async fn reachable(client: &Client, home: &Home, cluster: &Cluster) -> Result<()> {
    if has_bridge(home, cluster).await? {
        return Ok(());
    }
    let told = find(client, &cluster.name).await?.and_then(|n| n.options?.remove(BRIDGE));
    if told.is_none() {
        let net = Netlink::open()?;
        let bridge = net.bridge(&bridge_name(home, &cluster.name), mac(cluster.gateway())).await?;
        let address = Ipv4Net::new(cluster.gateway(), cluster.network.subnet.prefix_len())?;
        return net.add_address(bridge.index, address).await;
    }
    Err(Fault::new(
        Reason::DriverNotHealthy,
        "The engine's networks cannot be reached from here: it is in another network than this command",
    )
    .advice("Use an engine of this host, or --driver=native as root")
    .into())
}

async fn has_bridge(home: &Home, cluster: &Cluster) -> Result<bool> {
    let net = Netlink::open()?;
    let Some(bridge) = net.link(&bridge_name(home, &cluster.name)).await? else { return Ok(false) };
    let gateway = cluster.gateway();
    Ok(net.addresses().await?.iter().any(|(index, a)| *index == bridge.index && a.addr() == gateway))
}

/// The network is there, and these machines are on it.
pub async fn is_up(client: &Client, home: &Home, cluster: &Cluster, running: &[String]) -> Result<bool> {
    let Some(network) = find(client, &cluster.name).await? else { return Ok(false) };
    let on = network.containers.as_ref();
    let has = |m: &String| on.is_some_and(|all| all.values().any(|c| c.name.as_ref() == Some(m)));
    Ok(is_as_wanted(&network, home, cluster) && running.iter().all(has) && has_bridge(home, cluster).await?)
}

/// Removes the network if it is ours. One that is not there is none to remove.
pub async fn down(client: &Client, home: &Home, owner: &str, profile: &str) -> Result<()> {
    match find(client, profile).await? {
        Some(network) if owner_of(&network) == Some(owner) => {
            let ours = container::list(client, owner).await?;
            let on = network.containers.iter().flatten().filter_map(|(_, c)| c.name.clone());
            let guests = on.filter(|name| ours.iter().all(|c| c.machine != *name));
            let guests = guests.collect::<Vec<_>>().join(", ");
            if !guests.is_empty() {
                let message = format!(
                    "The engine's network \"{profile}\" is in use by containers that are not this cluster's: {guests}"
                );
                let advice =
                    format!("Remove them, or take them off it with docker network disconnect {profile}");
                return Err(Fault::new(Reason::GuestDeletion, message).advice(advice).into());
            }
            let id = network.id.as_deref().unwrap_or(profile);
            let removed = client.remove_network(id).await;
            removed.with_context(|| format!("remove the network {profile} of the engine"))?;
        }
        _ => {}
    }
    // One that the engine found there is left by it.
    Netlink::open()?.remove_link(&bridge_name(home, profile)).await
}

/// What the engine has given to others: no subnet of ours may lie there.
pub async fn in_use(client: &Client) -> Result<Vec<Ipv4Net>> {
    Ok(subnets(client).await?.into_iter().map(|(_, subnet)| subnet).collect())
}

/// All networks of the engine that have one, by name.
async fn subnets(client: &Client) -> Result<Vec<(String, Ipv4Net)>> {
    let networks = client.list_networks(None::<ListNetworksOptions>).await;
    let networks = networks.context("list the engine's networks")?.into_iter();
    let of = |network: Network| {
        let (name, configs) = (network.name.unwrap_or_default(), network.ipam.and_then(|i| i.config));
        let subnets = configs.into_iter().flatten().filter_map(|c| c.subnet?.parse().ok());
        subnets.map(move |subnet| (name.clone(), subnet)).collect::<Vec<_>>()
    };
    Ok(networks.flat_map(of).collect())
}

async fn who_has(client: &Client, subnet: Ipv4Net) -> Result<Option<String>> {
    let overlap = |other: &Ipv4Net| other.contains(&subnet) || subnet.contains(other);
    Ok(subnets(client).await?.into_iter().find(|(_, other)| overlap(other)).map(|(name, _)| name))
}

/// The network of that name: the engine would also take the beginning of an id.
async fn find(client: &Client, name: &str) -> Result<Option<NetworkInspect>> {
    match client.inspect_network(name, None::<InspectNetworkOptions>).await {
        Ok(network) => Ok(Some(network).filter(|found| found.name.as_deref() == Some(name))),
        Err(e) if container::is_missing(&e) || container::begins_several(&e) => Ok(None),
        Err(e) => Err(e).with_context(|| format!("look at the network {name} of the engine")),
    }
}

fn owner_of(network: &NetworkInspect) -> Option<&str> {
    network.labels.as_ref()?.get(HOME).map(String::as_str)
}

fn is_as_wanted(network: &NetworkInspect, home: &Home, cluster: &Cluster) -> bool {
    let configs = network.ipam.iter().filter_map(|i| i.config.as_ref()).flatten();
    let subnets: Vec<Ipv4Net> = configs.filter_map(|c| c.subnet.as_ref()?.parse().ok()).collect();
    let bridge = network.options.as_ref().and_then(|o| o.get(BRIDGE));
    let ours = bridge_name(home, &cluster.name);
    subnets.contains(&cluster.network.subnet) && bridge.is_none_or(|bridge| *bridge == ours)
}
