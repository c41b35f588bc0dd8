//! A directory or file of the host in a node: `host:node[:ro]`.

use std::fmt;
use std::str::FromStr;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mount {
    pub host: String,
    pub node: String,
    pub read_only: bool,
}

impl Mount {
    pub fn new(host: &str, node: &str, read_only: bool) -> Result<Mount, String> {
        if host.is_empty() || host.contains([':', '\n', '\0']) {
            return Err(format!("{host:?} cannot be mounted: not a path, or one with a colon"));
        }
        check_node_path(node)?;
        Ok(Mount { host: host.to_owned(), node: node.to_owned(), read_only })
    }
}

/// Places in a node that nothing may hide, because the node would not come up.
const RESERVED: [&str; 5] = ["/proc", "/sys", "/dev", "/run", "/etc/manykube"];

/// Absolute, without `..`, and not a place the node itself needs.
pub fn check_node_path(path: &str) -> Result<(), String> {
    let normal = path.trim_end_matches('/');
    if !path.starts_with('/') || path.contains([':', '\n', '\0']) || path.split('/').any(|p| p == "..") {
        return Err(format!("{path:?} is not an absolute path in the node"));
    }
    let taken =
        |r: &&str| normal.strip_prefix(*r).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    match RESERVED.into_iter().find(taken) {
        _ if normal.is_empty() => Err("/ of the node cannot be replaced".to_owned()),
        Some(reserved) => Err(format!("{path:?} lies in {reserved}, which the node needs itself")),
        None => Ok(()),
    }
}

impl fmt::Display for Mount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}{}", self.host, self.node, if self.read_only { ":ro" } else { "" })
    }
}

impl FromStr for Mount {
    type Err = String;

    fn from_str(text: &str) -> Result<Mount, String> {
        let want = || format!("{text:?} is not a mount: give HOST:NODE or HOST:NODE:ro, like ./src:/src:ro");
        let mut parts = text.split(':');
        let (host, node) = (parts.next().ok_or_else(want)?, parts.next().ok_or_else(want)?);
        let read_only = match parts.next() {
            None | Some("rw") => false,
            Some("ro") => true,
            Some(_) => return Err(want()),
        };
        if parts.next().is_some() {
            return Err(want());
        }
        Mount::new(host, node, read_only)
    }
}

super::as_text!(Mount);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts() {
        for text in ["/a:/b", "./src:/src:ro", "~/x y:/data"] {
            assert_eq!(text.parse::<Mount>().unwrap().to_string(), text);
        }
        assert_eq!("/a:/b:rw".parse::<Mount>().unwrap().to_string(), "/a:/b");
        for bad in [
            "",
            "/a",
            ":/b",
            "/a:",
            "/a:b",
            "/a:/b:x",
            "/a:/b:ro:ro",
            "/a:/",
            "/a:/proc/x",
            "/a:/x/../y",
            "/a:/dev",
        ] {
            assert!(bad.parse::<Mount>().is_err(), "{bad}");
        }
        assert!("/a:/device".parse::<Mount>().is_ok());
    }
}
