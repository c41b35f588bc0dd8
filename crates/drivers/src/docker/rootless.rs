//! Engines that run as a user, in a user namespace: what they must be given so that nodes can be their containers.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use bollard::Docker as Client;
use bollard::models::{SystemInfo, SystemInfoCgroupDriverEnum, SystemInfoCgroupVersionEnum};
use image::NodeImage;
use model::{Fault, Reason};
use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;

use crate::user_namespace;

/// Overlays of a user's own, which every node is made of.
const KERNEL: (u32, u32) = (5, 11);
const OTHERS: &str =
    "Use the host's own engine (DOCKER_HOST=unix:///var/run/docker.sock), or --driver=native as root";

pub fn is_rootless(info: &SystemInfo) -> bool {
    info.security_options.iter().flatten().any(|option| option.contains("rootless"))
}

fn fault(why: &str, advice: &str) -> Fault {
    Fault::new(Reason::DriverNotHealthy, format!("This Docker engine is rootless, {why}")).advice(advice)
}

/// Can nodes be containers of this one? One that is `here` is that of one of this host's users.
pub fn suits(info: &SystemInfo, here: bool) -> Result<(), Fault> {
    if let Some(fault) = lacks(info) {
        return Err(fault);
    }
    if here && rustix::process::geteuid().is_root() && !user_namespace::is_own() {
        let advice = "Run the same command as that user, without sudo";
        return Err(fault("and its user is another one than root", advice));
    }
    Ok(())
}

fn lacks(info: &SystemInfo) -> Option<Fault> {
    if info.cgroup_version != Some(SystemInfoCgroupVersionEnum::_2) {
        return Some(fault("on a host with cgroup v1, where nodes cannot be", OTHERS));
    }
    if info.cgroup_driver != Some(SystemInfoCgroupDriverEnum::SYSTEMD) {
        let why = "and was not started by the user's systemd, so it has no cgroups to give to nodes";
        return Some(fault(why, "Start it with 'systemctl --user start docker'"));
    }
    let controllers = [("cpu", info.cpu_cfs_quota), ("memory", info.memory_limit), ("pids", info.pids_limit)];
    let missing: Vec<_> =
        controllers.iter().filter(|(_, has)| *has != Some(true)).map(|(name, _)| *name).collect();
    if !missing.is_empty() {
        let why =
            format!("and systemd does not hand the cgroup controllers {} on to users", missing.join(", "));
        return Some(fault(
            &why,
            "As root, write '[Service]' and 'Delegate=cpu cpuset io memory pids' to \
             /etc/systemd/system/user@.service.d/delegate.conf, run 'systemctl daemon-reload', and log in again",
        ));
    }
    let kernel = info.kernel_version.as_deref().unwrap_or_default();
    if version(kernel).is_some_and(|found| found < KERNEL) {
        let why = format!("on Linux {kernel}, and for that nodes need {}.{}", KERNEL.0, KERNEL.1);
        return Some(fault(&why, OTHERS));
    }
    None
}

/// Of `6.12.48+deb13-amd64`.
fn version(kernel: &str) -> Option<(u32, u32)> {
    let mut numbers = kernel.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// podman does not say that it is, but who listens at its socket is known.
pub fn podman(socket: &Path) -> Result<(), Fault> {
    let user = user_of(socket);
    if user == 0 {
        return Ok(());
    }
    let message = format!("This podman is rootless (uid {user}): nodes are containers of root's podman only");
    Err(Fault::new(Reason::DriverNotHealthy, message).advice(
        "Use root's ('sudo systemctl start podman.socket', then the same command with sudo), or a Docker engine, which may be rootless",
    ))
}

/// Of an engine of which it is not known whose it is, because Docker's address was used for it.
pub async fn disguised(client: &Client, socket: &Path) -> Result<(), Fault> {
    if user_of(socket) == 0 {
        return Ok(());
    }
    // Asked only then: podman takes its time to tell.
    let parts = client.version().await.ok().and_then(|version| version.components).unwrap_or_default();
    if parts.iter().any(|part| part.name.contains("Podman")) { podman(socket) } else { Ok(()) }
}

fn user_of(socket: &Path) -> u32 {
    let listens = || {
        let stream = std::os::unix::net::UnixStream::connect(socket).ok()?;
        Some(getsockopt(&stream, PeerCredentials).ok()?.uid())
    };
    listens().unwrap_or(0)
}

/// Files whose owner there is not are nobody's to hand out: a node made of them could not even start.
pub fn owns(image: &NodeImage) -> Result<(), Fault> {
    let owner = std::fs::metadata(image.rootfs().join("usr")).map_or(0, |found| found.uid());
    if !user_namespace::is_own() || owner == 0 {
        return Ok(());
    }
    let name = &image.name;
    let message =
        format!("The node image {name} belongs to the host's root, who is nobody to a rootless engine");
    Err(Fault::new(Reason::DriverNotHealthy, message).advice(format!(
        "Take it over: with sudo and MANYKUBE_HOME set to this home, 'node-image export FILE --name {name}' and 'node-image rm {name}'; \
         then 'sudo cat FILE | manykube node-image import -'"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn engine() -> SystemInfo {
        SystemInfo {
            security_options: Some(vec!["name=seccomp,profile=builtin".into(), "name=rootless".into()]),
            cgroup_version: Some(SystemInfoCgroupVersionEnum::_2),
            cgroup_driver: Some(SystemInfoCgroupDriverEnum::SYSTEMD),
            cpu_cfs_quota: Some(true),
            memory_limit: Some(true),
            pids_limit: Some(true),
            kernel_version: Some("6.12.48+deb13-amd64".into()),
            ..SystemInfo::default()
        }
    }

    #[test]
    fn what_is_lacking_is_named() {
        assert!(is_rootless(&engine()) && !is_rootless(&SystemInfo::default()));
        assert_eq!(lacks(&engine()), None);
        let said = |info: SystemInfo| lacks(&info).unwrap().message;
        let v1 = SystemInfo { cgroup_version: Some(SystemInfoCgroupVersionEnum::_1), ..engine() };
        assert!(said(v1).contains("cgroup v1"));
        let none = SystemInfo { cgroup_driver: Some(SystemInfoCgroupDriverEnum::NONE), ..engine() };
        assert!(said(none).contains("systemd"));
        let few = SystemInfo { cpu_cfs_quota: Some(false), pids_limit: None, ..engine() };
        assert!(said(few).contains("controllers cpu, pids on"));
        let old = SystemInfo { kernel_version: Some("5.10.0-35-amd64".into()), ..engine() };
        assert!(said(old).contains("5.11"));
    }

    #[test]
    fn versions_of_kernels() {
        assert_eq!(version("6.12.48+deb13-amd64"), Some((6, 12)));
        assert_eq!(version("5.11"), Some((5, 11)));
        assert_eq!(version("unknown"), None);
    }
}
