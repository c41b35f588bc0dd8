//! Values of `start`'s flags, checked one by one. Pure.

use std::net::Ipv4Addr;
use std::time::Duration;

use ipnet::Ipv4Net;
use model::cluster::WaitFor;
use model::config_file::MAX_CERT_HOURS;
use model::{Fault, Reason};

pub fn usage(message: impl Into<String>) -> Fault {
    Fault::new(Reason::Usage, message)
}

/// `true`/`all`, `false`/`none`, or a list.
pub fn wait(parts: &[String]) -> Result<Vec<WaitFor>, Fault> {
    match parts {
        [one] if one == "all" || one == "true" => return Ok(WaitFor::ALL.to_vec()),
        [one] if one == "none" || one == "false" => return Ok(Vec::new()),
        _ => {}
    }
    let mut list = Vec::new();
    for part in parts.iter().filter(|p| !p.is_empty()) {
        let known = WaitFor::ALL.into_iter().find(|w| w.as_str() == part).ok_or_else(|| {
            let names: Vec<&str> = WaitFor::ALL.iter().map(|w| w.as_str()).collect();
            usage(format!("--wait={part} is not known"))
                .advice(format!("Use all, none, or some of {}", names.join(",")))
        })?;
        list.push(known);
    }
    list.sort();
    list.dedup();
    Ok(list)
}

/// `192.168.60.0` or `192.168.60.0/24`.
pub fn subnet(text: &str) -> Result<Ipv4Net, Fault> {
    let net = match text.split_once('/') {
        Some(_) => text.parse::<Ipv4Net>().ok(),
        None => text.parse::<Ipv4Addr>().ok().and_then(|ip| Ipv4Net::new(ip, 24).ok()),
    };
    net.filter(|n| n.prefix_len() == 24 && n.network().is_private())
        .map(|n| n.trunc())
        .ok_or_else(|| usage(format!("--subnet={text} is not a private /24, like 192.168.60.0/24")))
}

/// Of a node: neither the network's own, the host's, nor the virtual one.
pub fn static_ip(text: &str) -> Result<Ipv4Addr, Fault> {
    let good = |ip: &Ipv4Addr| ip.is_private() && (2..=253).contains(&ip.octets()[3]);
    text.parse::<Ipv4Addr>().ok().filter(good).ok_or_else(|| {
        usage(format!(
            "--static-ip={text} is not a private IPv4 address whose last number is from 2 to 253, like 192.168.60.10"
        ))
    })
}

/// Room for at least the API's and the DNS's address.
pub fn service_range(text: &str) -> Result<Ipv4Net, Fault> {
    text.parse::<Ipv4Net>()
        .ok()
        .filter(|n| (8..=27).contains(&n.prefix_len()))
        .map(|n| n.trunc())
        .ok_or_else(|| usage(format!("--service-cluster-ip-range={text} is not a range like 10.96.0.0/12")))
}

pub fn ips(list: &[String]) -> Result<Vec<Ipv4Addr>, Fault> {
    list.iter()
        .filter(|ip| !ip.is_empty())
        .map(|ip| ip.parse().map_err(|_| usage(format!("--apiserver-ips={ip} is not an IPv4 address"))))
        .collect()
}

fn is_label(label: &str) -> bool {
    (1..=63).contains(&label.len())
        && label.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && !label.starts_with('-')
        && !label.ends_with('-')
}

pub fn namespace(text: &str) -> Result<String, Fault> {
    let fault = || usage(format!("--namespace={text} is not a namespace's name"));
    is_label(text).then(|| text.to_owned()).ok_or_else(fault)
}

pub fn domain(flag: &str, text: &str) -> Result<String, Fault> {
    // A certificate may name all of a domain.
    let name = text.strip_prefix("*.").unwrap_or(text);
    let good = text.len() <= 253 && name.split('.').all(is_label);
    good.then(|| text.to_owned()).ok_or_else(|| usage(format!("--{flag}={text} is not a DNS name")))
}

pub fn api_port(port: u16) -> Result<u16, Fault> {
    if model::address::is_node_port_taken(port) {
        return Err(usage(format!("--apiserver-port={port} is in use in every node"))
            .advice("Use another one, like 8443 or 6443"));
    }
    Ok(port)
}

/// Whole hours, rounded up.
pub fn cert_hours(duration: Duration) -> Result<u32, Fault> {
    let hours = duration.as_secs().div_ceil(3600);
    u32::try_from(hours)
        .ok()
        .filter(|h| (1..=MAX_CERT_HOURS).contains(h))
        .ok_or_else(|| usage(format!("--cert-expiration must be between 1h and {MAX_CERT_HOURS}h")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(list: &[&str]) -> Vec<String> {
        list.iter().map(|s| (*s).to_owned()).collect()
    }

    #[test]
    fn what_to_wait_for() {
        assert_eq!(wait(&strings(&["all"])).unwrap().len(), 7);
        assert_eq!(wait(&strings(&["true"])).unwrap().len(), 7);
        assert!(wait(&strings(&["none"])).unwrap().is_empty());
        let two = [WaitFor::Apiserver, WaitFor::NodeReady];
        assert_eq!(wait(&strings(&["node_ready", "apiserver", "apiserver"])).unwrap(), two);
        assert_eq!(wait(&strings(&["sunday"])).unwrap_err().reason, Reason::Usage);
    }

    #[test]
    fn networks() {
        assert_eq!(subnet("192.168.60.0").unwrap().to_string(), "192.168.60.0/24");
        assert_eq!(subnet("10.1.2.3/24").unwrap().to_string(), "10.1.2.0/24");
        for bad in ["", "x", "192.168.60.0/16", "8.8.8.0/24", "300.1.1.1", "192.168.60.0/"] {
            assert!(subnet(bad).is_err(), "{bad}");
        }
        assert_eq!(static_ip("192.168.60.10").unwrap(), Ipv4Addr::new(192, 168, 60, 10));
        for bad in ["", "x", "8.8.8.8", "192.168.60.1", "192.168.60.254", "192.168.60.0/24"] {
            assert!(static_ip(bad).is_err(), "{bad}");
        }
        assert_eq!(service_range("10.96.0.0/12").unwrap().to_string(), "10.96.0.0/12");
        assert!(service_range("10.96.0.0/30").is_err());
        assert!(ips(&strings(&["1.2.3.4", "::1"])).is_err());
    }

    #[test]
    fn names_and_numbers() {
        assert!(domain("dns-domain", "cluster.local").is_ok());
        assert!(domain("apiserver-names", "*.example.com").is_ok());
        for bad in ["", "a..b", "-a", "A b", "a/b", &"a".repeat(64)] {
            assert!(domain("dns-domain", bad).is_err(), "{bad}");
        }
        assert!(namespace("kube-system").is_ok() && namespace("a.b").is_err());
        assert!(api_port(6443).is_ok() && api_port(10250).is_err() && api_port(0).is_err());
        assert_eq!(cert_hours(Duration::from_secs(180)).unwrap(), 1);
        assert_eq!(cert_hours(Duration::from_secs(26280 * 3600)).unwrap(), 26280);
        assert!(cert_hours(Duration::ZERO).is_err());
    }
}
