//! A port of the host that leads to one of a node: `[address:]host:node[/protocol]`, as Docker spells it.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Port {
    /// `None`: all addresses of the host.
    pub listen: Option<Ipv4Addr>,
    pub host: u16,
    pub node: u16,
    pub protocol: Protocol,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    #[default]
    Tcp,
    Udp,
    Sctp,
}

impl Protocol {
    pub fn as_str(self) -> &'static str {
        match self {
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
            Protocol::Sctp => "sctp",
        }
    }
}

impl FromStr for Protocol {
    type Err = String;

    fn from_str(text: &str) -> Result<Protocol, String> {
        match text.to_ascii_lowercase().as_str() {
            "tcp" => Ok(Protocol::Tcp),
            "udp" => Ok(Protocol::Udp),
            "sctp" => Ok(Protocol::Sctp),
            _ => Err(format!("{text:?} is not a protocol: tcp, udp or sctp")),
        }
    }
}

impl Port {
    /// Would both want the same port of the host?
    pub fn clashes(&self, other: &Port) -> bool {
        let all = |a: Option<Ipv4Addr>| a.is_none_or(|a| a.is_unspecified());
        self.host == other.host
            && self.protocol == other.protocol
            && (self.listen == other.listen || all(self.listen) || all(other.listen))
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(listen) = self.listen {
            write!(f, "{listen}:")?;
        }
        write!(f, "{}:{}", self.host, self.node)?;
        match self.protocol {
            Protocol::Tcp => Ok(()),
            other => write!(f, "/{}", other.as_str()),
        }
    }
}

impl FromStr for Port {
    type Err = String;

    fn from_str(text: &str) -> Result<Port, String> {
        let want = || {
            format!(
                "{text:?} is not a port: give [ADDRESS:]HOST:NODE[/PROTOCOL], like 8080:30080 or 127.0.0.1:53:53/udp"
            )
        };
        let number = |t: &str| t.parse::<u16>().ok().filter(|n| *n > 0).ok_or_else(want);
        let (ports, protocol) = match text.split_once('/') {
            Some((ports, protocol)) => (ports, protocol.parse()?),
            None => (text, Protocol::Tcp),
        };
        let (left, node) = ports.rsplit_once(':').ok_or_else(want)?;
        let (listen, host) = match left.rsplit_once(':') {
            Some((address, host)) => (Some(address.parse().map_err(|_| want())?), host),
            None => (None, left),
        };
        Ok(Port { listen, host: number(host)?, node: number(node)?, protocol })
    }
}

super::as_text!(Port);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports() {
        for text in ["8080:80", "127.0.0.1:53:5353/udp", "0.0.0.0:1:65535/sctp"] {
            assert_eq!(text.parse::<Port>().unwrap().to_string(), text);
        }
        for bad in
            ["", "80", "0:80", "80:0", "80:70000", "a:80", "1.2.3:80:80", "80:80/icmp", "::1:80:80", "+8:80x"]
        {
            assert!(bad.parse::<Port>().is_err(), "{bad}");
        }
    }

    #[test]
    fn clashes() {
        let clash = |a: &str, b: &str| a.parse::<Port>().unwrap().clashes(&b.parse().unwrap());
        assert!(
            clash("80:1", "80:2") && clash("80:1", "127.0.0.1:80:2") && clash("0.0.0.0:80:1", "1.2.3.4:80:1")
        );
        assert!(
            !clash("80:1", "81:1") && !clash("80:1", "80:1/udp") && !clash("1.1.1.1:80:1", "1.1.1.2:80:1")
        );
    }
}
