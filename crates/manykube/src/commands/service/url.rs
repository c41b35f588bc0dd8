//! From a Service to the addresses it is reached at. Pure.

use std::net::Ipv4Addr;

use k8s_openapi::api::core::v1::Service;
use model::{Fault, Reason};

use crate::template;

/// The ports of a service: what they are called, and where nodes answer for them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ports {
    pub nodes: Vec<u16>,
    names: Vec<String>,
}

impl Ports {
    pub fn of(service: &Service) -> Ports {
        let all = service.spec.as_ref().and_then(|s| s.ports.as_ref()).into_iter().flatten();
        let mut ports = Ports::default();
        for port in all {
            let Some(node) = port.node_port.and_then(|p| u16::try_from(p).ok()).filter(|p| *p > 0) else {
                continue;
            };
            ports.nodes.push(node);
            ports.names.push(match port.name.as_deref() {
                Some(name) if !name.is_empty() => format!("{name}/{}", port.port),
                _ => port.port.to_string(),
            });
        }
        ports
    }

    /// `http/80`, or `80` for a port without name.
    pub fn names(&self) -> Vec<String> {
        if self.names.is_empty() { vec!["No node port".to_owned()] } else { self.names.clone() }
    }

    pub fn urls(&self, ip: Ipv4Addr, format: &str, https: bool, name: &str) -> Result<Vec<String>, Fault> {
        let urls = self.nodes.iter().map(|port| render(format, &ip.to_string(), &port.to_string(), name));
        let secure = |url: String| if https { url.replacen("http://", "https://", 1) } else { url };
        urls.map(|url| url.map(secure)).collect()
    }
}

fn render(format: &str, ip: &str, port: &str, name: &str) -> Result<String, Fault> {
    let field = |field: &str| match field {
        "IP" => Some(ip.to_owned()),
        "Port" => Some(port.to_owned()),
        "Name" => Some(name.to_owned()),
        _ => None,
    };
    template::render(format, &field)
        .map_err(|e| Fault::new(Reason::Usage, format!("--format: {e}")).advice("Fields: .IP .Port .Name"))
}

pub fn check(format: &str) -> Result<(), Fault> {
    render(format, "", "", "").map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(ports: serde_json::Value) -> Service {
        serde_json::from_value(serde_json::json!({ "spec": { "ports": ports } })).expect("a service")
    }

    #[test]
    fn node_ports_make_addresses() {
        let ports = Ports::of(&service(serde_json::json!([
            { "name": "http", "port": 80, "nodePort": 30080 }, { "port": 443, "nodePort": 30443 }, { "port": 1 }
        ])));
        assert_eq!(ports.names(), ["http/80", "443"]);
        let ip = Ipv4Addr::new(192, 168, 49, 2);
        let urls = |format, https| ports.urls(ip, format, https, "web");
        let usual = "http://{{.IP}}:{{.Port}}";
        assert_eq!(
            urls(usual, false).expect("urls"),
            ["http://192.168.49.2:30080", "http://192.168.49.2:30443"]
        );
        assert_eq!(urls(usual, true).expect("urls")[0], "https://192.168.49.2:30080");
        assert_eq!(urls("{{.Name}}={{.Port}}", false).expect("urls")[1], "web=30443");
        assert!(check("{{.Host}}").is_err());
        assert_eq!(Ports::of(&service(serde_json::json!([{ "port": 1 }]))).names(), ["No node port"]);
    }
}
