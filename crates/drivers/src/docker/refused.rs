//! What an engine refuses, in one line and with what to do about it. Its own words are of what it did, and long.

use std::net::SocketAddrV4;

use bollard::errors::Error;
use model::{Fault, Reason};

use crate::driver::MachineSpec;

/// Of the container that is being made or started for a machine.
pub fn machine(spec: &MachineSpec, what: &str, error: Error) -> anyhow::Error {
    let (name, network) = (&spec.name, &spec.cluster.name);
    let text = error.to_string();
    if let Some(full) = disk(&text) {
        return full.into();
    }
    if let Some(port) = port(&text) {
        let message = format!("The port {port} of this host, which is to lead to {name}, is in use");
        let advice = "End who has it, or name another one with --ports";
        return Fault::new(Reason::GuestStart, message).advice(advice).into();
    }
    if text.contains("Address already in use") {
        let message =
            format!("The address {} of {name} is in use in the engine's network {network}", spec.ip);
        let advice = format!("Remove the container that has it: docker network inspect {network}");
        return Fault::new(Reason::GuestStart, message).advice(advice).into();
    }
    anyhow::Error::new(error).context(format!("{what} the container {name}"))
}

/// Where the engine keeps its data there is no room.
pub fn disk(text: &str) -> Option<Fault> {
    text.to_lowercase().contains("no space left on device").then(|| {
        Fault::new(Reason::DockerStorage, "There is no space left where the Docker engine keeps its data")
            .advice("Make room there, for instance with docker system prune, and run the same command again")
    })
}

/// A port that the host has given to somebody else.
fn port(text: &str) -> Option<SocketAddrV4> {
    let taken = text.contains("port is already allocated") || text.contains("address already in use");
    let words = text.split_whitespace().map(|word| word.trim_end_matches(':'));
    words.filter_map(|word| word.parse().ok()).find(|_| taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_port_is_taken() {
        let proxy = "driver failed programming external connectivity on endpoint minikube (3751): Error starting \
                     userland proxy: listen tcp4 127.0.0.1:18090: bind: address already in use";
        let other = "driver failed programming external connectivity on endpoint minikube (3751): Bind for \
                     0.0.0.0:18090 failed: port is already allocated";
        assert_eq!(port(proxy), Some("127.0.0.1:18090".parse().unwrap()));
        assert_eq!(port(other), Some("0.0.0.0:18090".parse().unwrap()));
        assert_eq!(port("Address already in use"), None);
        assert_eq!(port("dial tcp 127.0.0.1:18090: connection refused"), None);
    }

    #[test]
    fn a_full_disk() {
        let text = "write /x/.tmp-hostconfig.json1029381636: no space left on device";
        assert_eq!(disk(text).unwrap().reason, Reason::DockerStorage);
        assert_eq!(disk("no such image"), None);
    }
}
