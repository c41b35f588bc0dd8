//! Sizes a user asks for, and whether the host can give them.

use crate::{Fault, NodeConfig, Reason};

pub const MIN_MEMORY_MIB: u32 = 1800;
pub const MIN_CPUS: u32 = 2;
/// A kubelet, containerd and a pod or two; kubeadm asks more of control planes only.
pub const MIN_WORKER_MEMORY_MIB: u32 = 256;
pub const MIN_WORKER_CPUS: u32 = 1;
pub const DEFAULT_CPUS: u32 = 2;
pub const DEFAULT_DISK_MIB: u32 = 20000;
pub const MIN_DISK_MIB: u32 = 2000;

const FALLBACK_MEMORY_MIB: u32 = 3072;
const MAX_DEFAULT_MEMORY_MIB: u32 = 6144;

/// What a node takes with nothing but Kubernetes on it, as counted (PSS) on clusters of one to
/// thirty-three nodes: an API server alone is half of a control plane.
const CONTROL_PLANE_MIB: u32 = 700;
const WORKER_MIB: u32 = 70;

/// What the host has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostSize {
    pub cpus: u32,
    pub memory_mib: u32,
}

/// An amount as written: `4g`, `max`, `no-limit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    Of(u32),
    Max,
    NoLimit,
}

impl Amount {
    /// A node without a limit has what the host has: that is also what it then shows as its capacity.
    pub fn or_all(self, all: u32) -> u32 {
        match self {
            Amount::Of(n) => n,
            Amount::Max | Amount::NoLimit => all,
        }
    }
}

fn usage(flag: &str, text: &str, want: &str) -> Fault {
    Fault::new(Reason::Usage, format!("Invalid value {text:?} for --{flag}: {want}"))
}

/// MiB: a bare number is MiB, a suffix is binary (`4g`, `4gb`, `4Gi`, `4GiB` are all 4096).
pub fn mib(text: &str) -> Option<u32> {
    let lower = text.trim().to_ascii_lowercase();
    let digits = lower.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(lower.len());
    let (number, unit) = lower.split_at(digits);
    let unit = unit.trim_start();
    if unit.is_empty() {
        return number.parse().ok();
    }
    let unit = match unit {
        "b" => "",
        _ => ["ib", "b", "i"].iter().find_map(|end| unit.strip_suffix(end)).unwrap_or(unit),
    };
    let bytes_per = match unit {
        "" => 1.0,
        "k" => 1024.0,
        "m" => 1024.0 * 1024.0,
        "g" => 1024.0 * 1024.0 * 1024.0,
        "t" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    let size = number.parse::<f64>().ok()? * bytes_per / (1024.0 * 1024.0);
    // Truncating, as minikube does.
    (size.is_finite() && size < f64::from(u32::MAX)).then_some(size as u32)
}

pub fn parse_memory(text: &str) -> Result<Amount, Fault> {
    match text {
        "max" => Ok(Amount::Max),
        "no-limit" => Ok(Amount::NoLimit),
        _ => mib(text)
            .map(Amount::Of)
            .ok_or_else(|| usage("memory", text, "give MiB or a size with a unit, like 4096 or 4g, or max")),
    }
}

pub fn parse_cpus(text: &str) -> Result<Amount, Fault> {
    match text {
        "max" => Ok(Amount::Max),
        "no-limit" => Ok(Amount::NoLimit),
        _ => text.parse().map(Amount::Of).map_err(|_| usage("cpus", text, "give a whole number, or max")),
    }
}

pub fn parse_disk(text: &str) -> Result<u32, Fault> {
    mib(text).ok_or_else(|| usage("disk-size", text, "give MiB or a size with a unit, like 20000mb or 20g"))
}

/// A quarter of the host's memory over all nodes, rounded to 100 MiB, within bounds that suit Kubernetes.
pub fn default_memory(host_mib: u32, nodes: u32) -> u32 {
    if FALLBACK_MEMORY_MIB > host_mib {
        return host_mib;
    }
    let quarter = host_mib / 400 * 100;
    (quarter / nodes.max(1)).clamp(FALLBACK_MEMORY_MIB, MAX_DEFAULT_MEMORY_MIB)
}

/// What one node has of its own size.
pub fn check_node(config: &NodeConfig, control_plane: bool, host: HostSize) -> Result<(), Fault> {
    let least = if control_plane { MIN_CPUS } else { MIN_WORKER_CPUS };
    config.cpus.map_or(Ok(()), |cpus| cpus_from(least, cpus, host))?;
    let least = if control_plane { MIN_MEMORY_MIB } else { MIN_WORKER_MEMORY_MIB };
    config.memory_mib.map_or(Ok(()), |memory| memory_from(least, memory, host))?;
    config.disk_mib.map_or(Ok(()), check_disk)
}

/// Refuses what cannot work; the caller skips this under `--force`.
pub fn check_memory(asked: u32, host: HostSize) -> Result<(), Fault> {
    if host.memory_mib < MIN_MEMORY_MIB {
        let message = format!(
            "System only has {}MiB available, less than the required {MIN_MEMORY_MIB}MiB for Kubernetes",
            host.memory_mib
        );
        return Err(Fault::new(Reason::InsufficientSysMemory, message).advice("Use a host with more memory"));
    }
    memory_from(MIN_MEMORY_MIB, asked, host)
}

fn memory_from(least: u32, asked: u32, host: HostSize) -> Result<(), Fault> {
    if asked < least {
        let message =
            format!("Requested memory allocation {asked}MiB is less than the usable minimum of {least}MB");
        let advice = format!("Ask for more: --memory={}mb", default_memory(host.memory_mib, 1));
        return Err(Fault::new(Reason::InsufficientReqMemory, message).advice(advice));
    }
    if asked > host.memory_mib {
        let message = format!(
            "Requested memory allocation {asked}MB is more than your system limit {}MB.",
            host.memory_mib
        );
        let advice = format!("Ask for less: --memory={}mb", default_memory(host.memory_mib, 1));
        return Err(Fault::new(Reason::OverAllocMem, message).advice(advice));
    }
    Ok(())
}

/// Nodes that are to be booted on a host. An error when they cannot all be there at once (the caller
/// skips it under `--force`), a sentence when it is getting tight. A node's own size is only a limit.
pub fn check_room(
    control_planes: u32,
    workers: u32,
    available_mib: u32,
    host: HostSize,
) -> Result<Option<String>, Fault> {
    let need = control_planes.saturating_mul(CONTROL_PLANE_MIB) + workers.saturating_mul(WORKER_MIB);
    let nodes = match control_planes + workers {
        1 => "1 more node needs".to_owned(),
        n => format!("{n} more nodes need"),
    };
    if need > host.memory_mib {
        let message =
            format!("{nodes} about {need}MiB of memory, more than the {}MiB of this host", host.memory_mib);
        return Err(Fault::new(Reason::InsufficientSysMemory, message)
            .advice("Ask for fewer nodes or control planes, or use a host with more memory"));
    }
    Ok((need > available_mib).then(|| {
        format!("{nodes} about {need}MiB of memory, and only {available_mib}MiB are free on this host")
    }))
}

pub fn check_cpus(asked: u32, host: HostSize) -> Result<(), Fault> {
    cpus_from(MIN_CPUS, asked, host)
}

fn cpus_from(least: u32, asked: u32, host: HostSize) -> Result<(), Fault> {
    if asked < least {
        let message = format!("Requested cpu count {asked} is less than the minimum allowed of {least}");
        return Err(Fault::new(Reason::InsufficientCores, message).advice(format!("Ask for --cpus={least}")));
    }
    if asked > host.cpus {
        let message =
            format!("Requested cpu count {asked} is greater than the available cpus of {}", host.cpus);
        let advice = format!("Ask for --cpus={} or less, or --cpus=max", host.cpus);
        return Err(Fault::new(Reason::InsufficientCores, message).advice(advice));
    }
    Ok(())
}

pub fn check_disk(asked: u32) -> Result<(), Fault> {
    if asked < MIN_DISK_MIB {
        let message = format!("Requested disk size {asked} is less than minimum of {MIN_DISK_MIB}");
        return Err(
            Fault::new(Reason::Usage, message).advice(format!("Ask for --disk-size={DEFAULT_DISK_MIB}mb"))
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_as_written() {
        for (text, want) in [
            ("4096", 4096),
            ("4096mb", 4096),
            ("4096MB", 4096),
            ("4g", 4096),
            ("4gb", 4096),
            ("2GiB", 2048),
            ("2Gi", 2048),
            ("512Mi", 512),
            ("1.5g", 1536),
            ("1t", 1024 * 1024),
            ("3145728k", 3072),
            ("1073741824b", 1024),
        ] {
            assert_eq!(parse_memory(text), Ok(Amount::Of(want)), "{text}");
        }
        assert_eq!(parse_memory("max"), Ok(Amount::Max));
        assert_eq!(parse_cpus("no-limit"), Ok(Amount::NoLimit));
        assert_eq!(parse_cpus("4"), Ok(Amount::Of(4)));
        for bad in ["", "abc", "-1", "4x", "4 4", "g", "1e99", "99999999999", "4gib2"] {
            assert_eq!(parse_memory(bad).unwrap_err().reason, Reason::Usage, "{bad}");
        }
        for bad in ["", "two", "-1", "1.5"] {
            assert_eq!(parse_cpus(bad).unwrap_err().reason, Reason::Usage, "{bad}");
        }
    }

    #[test]
    fn default_memory_follows_minikube() {
        for (host, nodes, want) in [
            (2000, 1, 2000),
            (8000, 1, 3072),
            (16000, 1, 4000),
            (24103, 1, 6000),
            (64000, 1, 6144),
            (64000, 4, 4000),
        ] {
            assert_eq!(default_memory(host, nodes), want, "{host} {nodes}");
        }
    }

    #[test]
    fn refusals_have_minikubes_codes() {
        let host = HostSize { cpus: 4, memory_mib: 8000 };
        let code = |r: Result<(), Fault>| r.map_err(|f| (f.reason.id(), f.reason.exit_code()));
        assert_eq!(code(check_memory(1799, host)), Err(("RSRC_INSUFFICIENT_REQ_MEMORY", 23)));
        assert_eq!(code(check_memory(1800, host)), Ok(()));
        assert_eq!(code(check_memory(8001, host)), Err(("RSRC_OVER_ALLOC_MEM", 10)));
        assert_eq!(code(check_cpus(5, host)), Err(("RSRC_INSUFFICIENT_CORES", 29)));
        assert_eq!(code(check_cpus(1, host)), Err(("RSRC_INSUFFICIENT_CORES", 29)));
        assert_eq!(code(check_cpus(4, host)), Ok(()));
        let small = HostSize { cpus: 4, memory_mib: 1000 };
        assert_eq!(code(check_memory(1800, small)), Err(("RSRC_INSUFFICIENT_SYS_MEMORY", 23)));
    }

    #[test]
    fn a_worker_may_be_smaller_than_a_control_plane() {
        let host = HostSize { cpus: 4, memory_mib: 8000 };
        let size =
            |cpus, memory| NodeConfig { cpus: Some(cpus), memory_mib: Some(memory), ..NodeConfig::default() };
        assert_eq!(check_node(&size(1, 256), false, host), Ok(()));
        assert_eq!(check_node(&NodeConfig::default(), true, host), Ok(()));
        for (config, control_plane, reason) in [
            (size(1, 4000), true, Reason::InsufficientCores),
            (size(2, 1000), true, Reason::InsufficientReqMemory),
            (size(0, 1000), false, Reason::InsufficientCores),
            (size(1, 255), false, Reason::InsufficientReqMemory),
            (size(5, 1000), false, Reason::InsufficientCores),
            (size(1, 9000), false, Reason::OverAllocMem),
            (NodeConfig { disk_mib: Some(1), ..size(1, 1000) }, false, Reason::Usage),
        ] {
            assert_eq!(check_node(&config, control_plane, host).unwrap_err().reason, reason);
        }
    }

    #[test]
    fn room_for_many_nodes() {
        let host = HostSize { cpus: 2, memory_mib: 8000 };
        assert_eq!(check_room(3, 30, 8000, host), Ok(None));
        let tight = check_room(1, 0, 300, host).unwrap().unwrap();
        assert_eq!(tight, "1 more node needs about 700MiB of memory, and only 300MiB are free on this host");
        assert_eq!(check_room(3, 90, 8000, host).unwrap_err().reason, Reason::InsufficientSysMemory);
        assert_eq!(check_room(0, 0, 0, host), Ok(None));
    }

    proptest! {
        #[test]
        fn any_text_is_a_size_or_a_refusal(text in ".{0,12}") {
            let _ = (parse_memory(&text), parse_cpus(&text), parse_disk(&text));
        }

        #[test]
        fn the_default_passes_the_check(memory_mib in 1800u32..1_000_000, nodes in 1u32..9) {
            let host = HostSize { cpus: 2, memory_mib };
            prop_assert_eq!(check_memory(default_memory(memory_mib, nodes), host), Ok(()));
        }
    }
}
