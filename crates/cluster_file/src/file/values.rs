//! Values of the file, each checked where it stands, so that the error points at it.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use ipnet::Ipv4Net;
use model::config_file::MAX_CERT_HOURS;
use model::node_config::{self, Binary, check_node_path};
use model::{Cni, DriverKind, address, names, resources, skew};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};
use serde_json::{Map, Value};

/// Declares `fn name(deserializer) -> Option<String>` with a check of the text.
macro_rules! texts {
    ($($(#[$meta:meta])* $name:ident => $check:expr;)*) => {
        $($(#[$meta])*
        pub fn $name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
            let check: fn(&str) -> Result<(), String> = $check;
            let text = Option::<String>::deserialize(deserializer)?;
            text.as_deref().map_or(Ok(()), check).map_err(D::Error::custom)?;
            Ok(text)
        })*
    };
}

fn require(good: bool, message: impl FnOnce() -> String) -> Result<(), String> {
    if good { Ok(()) } else { Err(message()) }
}

texts! {
    cluster_name => |name| {
        require(names::is_valid_profile(name), || {
            format!("{name:?} is no name for a cluster: 2 to 40 letters, digits and dashes between them")
        })?;
        require(!names::is_reserved_profile(name), || format!("{name:?} is the name of a command, not of a cluster"))
    };
    node_name => |name| require(names::is_valid_node(name), || {
        format!("{name:?} is no name for a node: up to 22 lower-case letters, digits and dashes between them, and not m01")
    });
    name_prefix => |prefix| require(names::is_valid_node(&format!("{prefix}999")), || {
        format!("{prefix:?} is no beginning of names: up to 19 lower-case letters, digits and dashes")
    });
    version => |version| require(matches!(version, "stable" | "latest") || skew::minor(version).is_some(), || {
        format!("{version:?} is not a Kubernetes version: give one like v1.37.1, 1.37, stable or latest")
    });
    runtime => |name| require(matches!(name, "containerd" | "docker" | "cri-o"), || {
        format!("{name:?} is not a container runtime: containerd, docker or cri-o")
    });
    driver => |name| require(name == "auto" || name.parse::<DriverKind>().is_ok(), || {
        format!("{name:?} is not a driver: use native, or leave it out")
    });
    word => |text| require(!text.is_empty() && text.trim() == text, || format!("{text:?} is empty or has blanks around it"));
    cni => |text| {
        require(!text.is_empty(), || "the CNI is empty: auto, none, or a manifest".to_owned())?;
        require(Cni::parse(text).is_ok(), || format!("{text:?} is not built in: give the path of its manifest"))
    };
    domain => |text| check_domain(text);
    namespace => |text| require(is_label(text), || format!("{text:?} is not a namespace's name"));
}

fn is_label(label: &str) -> bool {
    (1..=63).contains(&label.len())
        && label.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && !label.starts_with('-')
        && !label.ends_with('-')
}

fn check_domain(text: &str) -> Result<(), String> {
    require(text.len() <= 253 && text.split('.').all(is_label), || format!("{text:?} is not a DNS name"))
}

pub fn node_path<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let path = String::deserialize(deserializer)?;
    check_node_path(&path).map_err(D::Error::custom)?;
    Ok(path)
}

fn number<'de, D: Deserializer<'de>>(
    deserializer: D,
    what: &str,
    most: u64,
) -> Result<Option<u64>, D::Error> {
    let number = Option::<u64>::deserialize(deserializer)?;
    match number {
        Some(n) if !(1..=most).contains(&n) => {
            Err(D::Error::custom(format!("{n} is no number of {what}: 1 to {most}")))
        }
        other => Ok(other),
    }
}

pub fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    Ok(number(deserializer, "nodes", 252)?.and_then(|n| n.try_into().ok()))
}

pub fn cpus<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    Ok(number(deserializer, "CPUs", 1024)?.and_then(|n| n.try_into().ok()))
}

pub fn api_port<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u16>, D::Error> {
    let port: Option<u16> = number(deserializer, "a port", 65535)?.and_then(|n| n.try_into().ok());
    match port {
        Some(port) if address::is_node_port_taken(port) => Err(D::Error::custom(format!(
            "the port {port} is in use in every node: use another one, like 8443 or 6443"
        ))),
        other => Ok(other),
    }
}

/// Sizes: MiB in the model, with a unit in the file.
macro_rules! sizes {
    ($($module:ident: $what:literal, $least:expr, $most:expr;)*) => {
        $(pub mod $module {
            use super::*;

            pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
                let Some(text) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
                let mib = resources::mib(&text).ok_or_else(|| {
                    D::Error::custom(format!("{text:?} is not a size: give MiB, or a number with a unit like 4g or 512Mi"))
                })?;
                if !($least..=$most).contains(&mib) {
                    return Err(D::Error::custom(format!(
                        "{text:?} is no size for {}: {} MiB to {} TiB", $what, $least, $most >> 20
                    )));
                }
                Ok(Some(mib))
            }

            pub fn serialize<S: Serializer>(mib: &Option<u32>, serializer: S) -> Result<S::Ok, S::Error> {
                match mib {
                    None => serializer.serialize_none(),
                    Some(mib) if mib % 1024 == 0 => serializer.collect_str(&format_args!("{}Gi", mib / 1024)),
                    Some(mib) => serializer.collect_str(&format_args!("{mib}Mi")),
                }
            }
        })*
    };
}

sizes! {
    memory: "a node's memory", 256u32, 64u32 << 20;
    disk: "a node's disk", resources::MIN_DISK_MIB, 1024u32 << 20;
}

pub mod hours {
    use super::*;

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
        let Some(text) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
        let hours =
            text.strip_suffix('h').and_then(|h| h.parse().ok()).filter(|h| (1..=MAX_CERT_HOURS).contains(h));
        hours.map(Some).ok_or_else(|| {
            D::Error::custom(format!("{text:?} is not a time in hours between 1h and {MAX_CERT_HOURS}h"))
        })
    }

    pub fn serialize<S: Serializer>(hours: &Option<u32>, serializer: S) -> Result<S::Ok, S::Error> {
        match hours {
            None => serializer.serialize_none(),
            Some(hours) => serializer.collect_str(&format_args!("{hours}h")),
        }
    }
}

/// Octal however it is written: 0644, "0644", 644, 0o644.
pub mod mode {
    use super::*;

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
        let Some(text) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
        let digits = text.strip_prefix("0o").unwrap_or(&text);
        let good = (3..=4).contains(&digits.len()) && digits.bytes().all(|b| (b'0'..=b'7').contains(&b));
        let mode = u32::from_str_radix(digits, 8).ok().filter(|_| good);
        mode.map(Some).ok_or_else(|| D::Error::custom(format!("{text:?} is not a file's mode, like 0644")))
    }

    pub fn serialize<S: Serializer>(mode: &Option<u32>, serializer: S) -> Result<S::Ok, S::Error> {
        match mode {
            None => serializer.serialize_none(),
            Some(mode) => serializer.collect_str(&format_args!("{mode:04o}")),
        }
    }
}

/// Declares a range of addresses with the lengths its prefix may have.
macro_rules! ranges {
    ($($name:ident: $like:literal, $good:expr;)*) => {
        $(pub fn $name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Ipv4Net>, D::Error> {
            let Some(text) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
            let good: fn(&Ipv4Net) -> bool = $good;
            let net = text.parse::<Ipv4Net>().ok().filter(good).map(|n| n.trunc());
            net.map(Some).ok_or_else(|| D::Error::custom(format!("{text:?} is not {}", $like)))
        })*
    };
}

ranges! {
    node_subnet: "a private /24, like 192.168.60.0/24", |n| n.prefix_len() == 24 && n.network().is_private();
    pod_subnet: "a range between /8 and /24, like 10.244.0.0/16", |n| (8..=24).contains(&n.prefix_len()) && usable(n);
    service_subnet: "a range between /8 and /27, like 10.96.0.0/12", |n| (8..=27).contains(&n.prefix_len()) && usable(n);
}

/// Not where the host itself or groups of hosts are.
pub fn usable(net: &Ipv4Net) -> bool {
    let first = net.network();
    !first.is_loopback() && !first.is_multicast() && first.octets()[0] != 0 && first.octets()[0] < 240
}

/// A list of texts that are not empty.
pub fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let list = Vec::<Full>::deserialize(deserializer)?;
    Ok(list.into_iter().map(|t| t.0).collect())
}

/// Declares a text with a check, to stand in lists and mappings.
macro_rules! checked {
    ($($name:ident => $check:expr;)*) => {
        $(#[derive(PartialEq, Eq, PartialOrd, Ord)]
        struct $name(String);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$name, D::Error> {
                let check: fn(&str) -> Result<(), String> = $check;
                let text = String::deserialize(deserializer)?;
                check(&text).map_err(D::Error::custom)?;
                Ok($name(text))
            }
        })*
    };
}

checked! {
    Full => |text| require(!text.trim().is_empty(), || "the text is empty".to_owned());
    San => |text| {
        // A certificate may name all of a domain.
        let name = text.strip_prefix("*.").unwrap_or(text);
        require(text.parse::<Ipv4Addr>().is_ok() || check_domain(name).is_ok(), || {
            format!("{text:?} is neither a DNS name nor an IPv4 address")
        })
    };
    LabelKey => node_config::check_label_key;
    LabelValue => node_config::check_label_value;
    Gate => node_config::check_feature_gate;
    Addon => |text| require(is_label(text), || format!("{text:?} is not the name of an addon"));
}

pub fn sans<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(Vec::<San>::deserialize(deserializer)?.into_iter().map(|t| t.0).collect())
}

pub fn labels<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error> {
    let map = BTreeMap::<LabelKey, LabelValue>::deserialize(deserializer)?;
    Ok(map.into_iter().map(|(k, v)| (k.0, v.0)).collect())
}

pub fn feature_gates<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, bool>, D::Error> {
    let map = BTreeMap::<Gate, bool>::deserialize(deserializer)?;
    Ok(map.into_iter().map(|(k, v)| (k.0, v)).collect())
}

pub fn addons<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<BTreeMap<String, bool>>, D::Error> {
    let map = Option::<BTreeMap<Addon, bool>>::deserialize(deserializer)?;
    Ok(map.map(|map| map.into_iter().map(|(k, v)| (k.0, v)).collect()))
}

pub fn binaries<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<Binary, String>, D::Error> {
    let map = BTreeMap::<Binary, Full>::deserialize(deserializer)?;
    Ok(map.into_iter().map(|(k, v)| (k, v.0)).collect())
}

pub fn object<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Map<String, Value>, D::Error> {
    Ok(Option::<Map<String, Value>>::deserialize(deserializer)?.unwrap_or_default())
}

struct KubeadmPatch(Map<String, Value>);

impl<'de> Deserialize<'de> for KubeadmPatch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<KubeadmPatch, D::Error> {
        let map = Map::deserialize(deserializer)?;
        check_kubeadm_patch(&map).map_err(D::Error::custom)?;
        Ok(KubeadmPatch(map))
    }
}

/// Documents of kubeadm's that can be patched.
pub const KUBEADM_KINDS: [&str; 5] = [
    "ClusterConfiguration",
    "InitConfiguration",
    "JoinConfiguration",
    "KubeletConfiguration",
    "KubeProxyConfiguration",
];

pub fn check_kubeadm_patch(map: &Map<String, Value>) -> Result<(), String> {
    match map.get("kind").and_then(Value::as_str) {
        Some(kind) if KUBEADM_KINDS.contains(&kind) => Ok(()),
        Some(kind) => Err(format!("the kind {kind:?} is none of {}", KUBEADM_KINDS.join(", "))),
        None => Err(format!("a patch for kubeadm needs a kind: one of {}", KUBEADM_KINDS.join(", "))),
    }
}

pub fn kubeadm_patches<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<Map<String, Value>>, D::Error> {
    Ok(Vec::<KubeadmPatch>::deserialize(deserializer)?.into_iter().map(|p| p.0).collect())
}
