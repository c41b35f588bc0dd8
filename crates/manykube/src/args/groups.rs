//! The many flags of `start`, in groups, as `--help` and docs/cli.md show them.

use clap::Command;

/// A heading, and the flags below it. What is in no group stands first.
const GROUPS: &[(&str, &[&str])] = &[
    (
        "Size of the cluster and of its nodes",
        &["nodes", "ha", "control-planes", "cpus", "memory", "disk-size"],
    ),
    (
        "Kubernetes",
        &[
            "kubernetes-version",
            "container-runtime",
            "addons",
            "apiserver-port",
            "apiserver-names",
            "apiserver-ips",
            "cert-expiration",
            "dns-domain",
        ],
    ),
    ("Network", &["subnet", "static-ip", "service-cluster-ip-range", "cni", "vip", "vip-image"]),
    ("kubectl", &["embed-certs", "keep-context", "namespace"]),
    (
        "How it is done",
        &["wait", "wait-timeout", "recover-from", "dry-run", "force", "delete-on-failure", "yes", "output"],
    ),
];

pub fn add(root: Command) -> Command {
    root.mut_subcommand("start", |start| {
        start.mut_args(|arg| {
            let of = |names: &[&str]| arg.get_long().is_some_and(|long| names.contains(&long));
            match GROUPS.iter().find(|(_, names)| of(names)) {
                Some((heading, _)) => arg.help_heading(*heading),
                None => arg,
            }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flag_of_a_group_exists() {
        let root = crate::args::definition("manykube");
        let start = root.find_subcommand("start").expect("start");
        for name in GROUPS.iter().flat_map(|(_, names)| *names) {
            assert!(start.get_arguments().any(|a| a.get_long() == Some(name)), "{name}");
        }
    }
}
