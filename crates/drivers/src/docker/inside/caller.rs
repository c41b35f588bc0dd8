//! Whom a command's container is there for: a process of this host, or of another one that uses the same engine.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::process::{self, Identity};

/// The pid namespace that a host begins with has this number on every one. Who is in another one is in a container,
/// where also the host's own id may be somebody else's.
const HOSTS: u64 = 0xEFFF_FFFC;

/// As the container's label has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caller {
    host: String,
    /// Of pids: who is in another one does not see the process.
    namespace: u64,
    process: Identity,
}

impl Caller {
    /// `None` where this process cannot be told to others.
    pub fn own() -> Option<Caller> {
        let pid = std::process::id();
        // Else /proc shows the processes of another namespace.
        if std::fs::read_link("/proc/self").ok()? != Path::new(&pid.to_string()) {
            return None;
        }
        let host = std::fs::read_to_string("/etc/machine-id").unwrap_or_default();
        let host = Some(host.trim()).filter(|id| id.len() == 32).map(|id| model::names::tagged("", id));
        Some(Caller {
            host: host.unwrap_or_default(),
            namespace: std::fs::metadata("/proc/self/ns/pid").ok()?.ino(),
            process: process::identify(pid).ok()?,
        })
    }

    pub fn label(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Has the process with that label ended for certain? `self` is who asks.
    pub fn outlived(&self, label: &str) -> bool {
        let Ok(other) = serde_json::from_str::<Caller>(label) else { return false };
        if other.namespace != self.namespace {
            return false;
        }
        if other.process.boot_id == self.process.boot_id {
            return process::has_ended(&other.process);
        }
        // Of another host nothing is known.
        self.namespace == HOSTS && !self.host.is_empty() && other.host == self.host
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_ended_for_certain() {
        let own = Caller::own().unwrap();
        let of = |change: &dyn Fn(&mut Caller)| {
            let mut other = own.clone();
            change(&mut other);
            own.outlived(&other.label())
        };
        assert!(!of(&|_| ()));
        assert!(of(&|c| c.process.started += 1));
        assert!(!of(&|c| {
            c.process.started += 1;
            c.namespace += 1;
        }));
        assert!(!own.outlived("") && !own.outlived("a-boot/17"));
    }

    #[test]
    fn of_a_host_that_was_started_anew() {
        let own = Caller { host: "a".into(), namespace: HOSTS, process: process::identify(1).unwrap() };
        let before = Identity { boot_id: "another".into(), ..own.process.clone() };
        let earlier = Caller { process: before, ..own.clone() };
        assert!(own.outlived(&earlier.label()));
        assert!(!own.outlived(&Caller { host: "b".into(), ..earlier.clone() }.label()));
        let unknown = |c: &Caller| Caller { host: String::new(), ..c.clone() };
        assert!(!unknown(&own).outlived(&unknown(&earlier).label()));
        let contained = |c: &Caller| Caller { namespace: HOSTS + 1000, ..c.clone() };
        assert!(!contained(&own).outlived(&contained(&earlier).label()));
    }
}
