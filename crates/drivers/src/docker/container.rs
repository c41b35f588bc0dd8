//! The container of a node: what it is made of, and what the engine says of it.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result};
use bollard::Docker as Client;
use bollard::errors::Error;
use bollard::models::{
    ContainerCreateBody, ContainerInspectResponse, ContainerSummary, ContainerSummaryStateEnum,
    EndpointIpamConfig, EndpointSettings, HostConfig, HostConfigCgroupnsModeEnum, Mount, MountType,
    NetworkingConfig, PortBinding,
};
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, InspectContainerOptions, ListContainersOptionsBuilder,
    RemoveContainerOptionsBuilder,
};
use model::address::mac_text;
use model::node_config::Port;

use super::init::BINDS;
use super::{CREATED_BY, HOME, INIT, MODE, NAME, PROFILE, ROLE, size};
use crate::driver::{Bind, MachineSpec};

pub fn is_missing(error: &Error) -> bool {
    matches!(error, Error::DockerResponseServerError { status_code: 404, .. })
}

/// No name is this: an engine that knows none looks among the beginnings of ids, and several begin so. Docker has one word for
/// containers and one for networks, podman one for both.
pub fn begins_several(error: &Error) -> bool {
    let Error::DockerResponseServerError { message, .. } = error else { return false };
    let words = ["multiple ids found", "matches found based on id prefix", "more than one result for"];
    words.iter().any(|words| message.to_lowercase().contains(words))
}

/// Found may also be something whose id begins with the name.
fn is_called(found: Option<&str>, name: &str) -> bool {
    found.map(|found| found.trim_start_matches('/')) == Some(name)
}

/// Where the container finds what of the host the node is to show.
pub fn staged(binds: &[Bind]) -> Vec<Bind> {
    let at = |i: usize| Path::new(BINDS).join(i.to_string());
    binds.iter().enumerate().map(|(i, b)| Bind { host: at(i), ..b.clone() }).collect()
}

/// `agent` is our program in the container, `own` what the node is made of besides the image: where it is on this host
/// and in the container, and whether it is read-only.
pub fn body(
    spec: &MachineSpec,
    owner: &str,
    image: String,
    agent: &Path,
    own: [(&Path, &str, bool); 3],
) -> ContainerCreateBody {
    let (name, network) = (&spec.name, &spec.cluster.name);
    let labels =
        [(CREATED_BY, "true"), (NAME, name), (MODE, name), (ROLE, ""), (PROFILE, network), (HOME, owner)];
    let bind = |host: &Path, node: &str, read_only: bool| Mount {
        typ: Some(MountType::BIND),
        source: Some(host.to_string_lossy().into_owned()),
        target: Some(node.to_owned()),
        read_only: Some(read_only),
        ..Mount::default()
    };
    let own = own.map(|(host, node, read_only)| bind(host, node, read_only));
    let asked = spec.binds.iter().zip(staged(&spec.binds));
    let asked = asked.map(|(b, at)| bind(&b.host, &at.host.to_string_lossy(), b.read_only));
    let address =
        EndpointIpamConfig { ipv4_address: Some(spec.ip.to_string()), ..EndpointIpamConfig::default() };
    let endpoint = EndpointSettings {
        ipam_config: Some(address),
        // Engines before 25.0 overlook it: the agent sets it then.
        mac_address: Some(mac_text(spec.ip)),
        ..EndpointSettings::default()
    };
    let size = size::size(spec);
    ContainerCreateBody {
        hostname: Some(name.clone()),
        image: Some(image),
        entrypoint: Some(vec![agent.to_string_lossy().into_owned(), INIT.to_owned()]),
        labels: Some(labels.map(|(k, v)| (k.to_owned(), v.to_owned())).into()),
        stop_signal: Some("SIGTERM".to_owned()),
        exposed_ports: Some(bindings(spec).into_keys().collect()),
        host_config: Some(HostConfig {
            privileged: Some(true),
            // One of the engine's would keep the top of the container's cgroups occupied.
            init: Some(false),
            cgroupns_mode: Some(HostConfigCgroupnsModeEnum::PRIVATE),
            network_mode: Some(network.clone()),
            mounts: Some(own.into_iter().chain(asked).collect()),
            port_bindings: Some(bindings(spec)),
            tmpfs: Some(["/run", "/tmp"].map(|dir| (dir.to_owned(), "exec".to_owned())).into()),
            nano_cpus: size.nano_cpus,
            cpuset_cpus: size.cpuset,
            memory: size.memory,
            memory_swap: size.memory_swap,
            ..HostConfig::default()
        }),
        networking_config: Some(NetworkingConfig {
            endpoints_config: Some(HashMap::from([(network.clone(), endpoint)])),
        }),
        ..ContainerCreateBody::default()
    }
}

fn bindings(spec: &MachineSpec) -> HashMap<String, Option<Vec<PortBinding>>> {
    let asked = spec.ports.iter().map(|port| (key(port), at(port)));
    // Like minikube's: on loopback, at whichever port is free.
    let loopback = || PortBinding { host_ip: Some(spec.listen.to_string()), host_port: Some(String::new()) };
    let usual = spec.forwarded.iter().map(|port| (format!("{port}/tcp"), loopback()));
    let mut all: HashMap<String, Option<Vec<PortBinding>>> = HashMap::new();
    for (key, binding) in asked.chain(usual) {
        all.entry(key).or_default().get_or_insert_default().push(binding);
    }
    all
}

fn key(port: &Port) -> String {
    format!("{}/{}", port.node, port.protocol.as_str())
}

fn at(port: &Port) -> PortBinding {
    PortBinding { host_ip: port.listen.map(|a| a.to_string()), host_port: Some(port.host.to_string()) }
}

/// What the engine has of ours.
pub struct Found {
    pub machine: String,
    pub profile: Option<String>,
    pub running: bool,
}

/// All containers of a home, whatever they do.
pub async fn list(client: &Client, owner: &str) -> Result<Vec<Found>> {
    let filters = HashMap::from([("label", vec![format!("{HOME}={owner}")])]);
    let options = ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
    let found = client.list_containers(Some(options)).await.context("list the engine's containers")?;
    Ok(found.into_iter().filter_map(read).collect())
}

fn read(container: ContainerSummary) -> Option<Found> {
    use ContainerSummaryStateEnum::{PAUSED, RUNNING};
    let labels = container.labels.unwrap_or_default();
    Some(Found {
        machine: labels.get(NAME)?.clone(),
        profile: labels.get(PROFILE).cloned(),
        running: matches!(container.state, Some(RUNNING | PAUSED)),
    })
}

/// The container of that name, whoever's it is.
pub async fn inspect(client: &Client, name: &str) -> Result<Option<ContainerInspectResponse>> {
    match client.inspect_container(name, None::<InspectContainerOptions>).await {
        Ok(container) => Ok(Some(container).filter(|found| is_called(found.name.as_deref(), name))),
        Err(e) if is_missing(&e) || begins_several(&e) => Ok(None),
        Err(e) => Err(e).with_context(|| format!("look at the container {name}")),
    }
}

/// For all that is done to it: by its name another one might be meant as soon as it is gone.
pub fn id(container: &ContainerInspectResponse) -> Result<&str> {
    container.id.as_deref().context("the engine's container has no id")
}

pub fn owner_of(container: &ContainerInspectResponse) -> Option<&str> {
    container.config.as_ref()?.labels.as_ref()?.get(HOME).map(String::as_str)
}

pub fn is_running(container: &ContainerInspectResponse) -> bool {
    container.state.as_ref().and_then(|s| s.running) == Some(true)
}

pub fn is_paused(container: &ContainerInspectResponse) -> bool {
    container.state.as_ref().and_then(|s| s.paused) == Some(true)
}

/// Its first process, as this host counts.
pub fn pid(container: &ContainerInspectResponse) -> Option<u32> {
    u32::try_from(container.state.as_ref()?.pid?).ok().filter(|pid| *pid > 0)
}

pub fn is_on(container: &ContainerInspectResponse, network: &str) -> bool {
    let networks = container.network_settings.as_ref().and_then(|s| s.networks.as_ref());
    networks.is_some_and(|n| n.contains_key(network))
}

/// Its id.
pub async fn create(client: &Client, name: Option<&str>, body: ContainerCreateBody) -> Result<String, Error> {
    let options = name.map(|name| CreateContainerOptionsBuilder::default().name(name).build());
    client.create_container(options, body).await.map(|made| made.id)
}

pub async fn remove(client: &Client, id: &str) -> Result<()> {
    // Volumes without a name go with it: there are none but what the image may have asked for.
    let options = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
    match client.remove_container(id, Some(options)).await {
        Err(e) if !is_missing(&e) => Err(e).with_context(|| format!("remove the container {id}")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_in_the_engines_words() {
        let of = |text: &str| {
            let port: Port = text.parse().expect("a port");
            (key(&port), at(&port).host_ip, at(&port).host_port.unwrap_or_default())
        };
        assert_eq!(of("8080:80"), ("80/tcp".into(), None, "8080".into()));
        assert_eq!(of("127.0.0.1:53:54/udp"), ("54/udp".into(), Some("127.0.0.1".into()), "53".into()));
    }

    #[test]
    fn a_name_is_not_the_beginning_of_an_id() {
        assert!(is_called(Some("/c1"), "c1") && is_called(Some("c1"), "c1"));
        assert!(!is_called(Some("/web"), "c1") && !is_called(None, "c1"));
        let says = |message: &str| {
            let message = message.to_owned();
            begins_several(&Error::DockerResponseServerError { status_code: 400, message })
        };
        assert!(says("multiple IDs found with provided prefix: c1"));
        assert!(says("network ab is ambiguous (2 matches found based on ID prefix)"));
        assert!(says("more than one result for container name ab: container already exists"));
        // That is two of the same name.
        assert!(!says("network ab is ambiguous (2 matches found on name)"));
    }
}
