//! Whether this host and this profile can be started at all.

use std::net::Ipv4Addr;

use drivers::docker::Address;
use model::{Cluster, DriverKind, Fault, Home, NodeConfig, Reason, names};

use super::values::usage;
use super::{Args, cni, grace, vip};
use crate::args::inert::Effect;
use crate::core;
use crate::ctx::Ctx;
use crate::host;
use crate::state::profile;

const GIB: u64 = 1 << 30;
/// Below this much room a cluster soon evicts its own pods.
const MIN_FREE: u64 = 5 * GIB;

/// Combinations of flags that cannot be, and those that are not there yet.
pub fn flags(args: &Args) -> Result<(), Fault> {
    let refused = args.inert.named(Effect::Refuse);
    if refused.iter().any(|f| f == "--no-kubernetes") && args.kubernetes_version.is_some() {
        return Err(usage("--kubernetes-version cannot be used together with --no-kubernetes"));
    }
    if let Some(flag) = refused.first() {
        return Err(Fault::new(Reason::Unimplemented, format!("{flag} is not supported yet")));
    }
    cni::asked(args)?;
    node_defaults(args)?;
    vip::check(args)
}

/// minikube publishes ports on 127.0.0.1 unless it is told otherwise, and so does the docker driver. With the
/// native one the nodes' own addresses are the
/// host's to reach, and nothing is published at all: to go on would leave out what was asked for.
pub fn listen_address(args: &Args, driver: DriverKind) -> Result<Option<Ipv4Addr>, Fault> {
    match args.listen_address.as_deref() {
        None | Some("" | "127.0.0.1" | "localhost") => Ok(None),
        Some(other) if driver.is_engine() => other
            .parse()
            .map(Some)
            .map_err(|_| usage(format!("--listen-address={other} is not an address like 0.0.0.0"))),
        Some(other) => Err(Fault::new(
            Reason::Unimplemented,
            format!("--listen-address={other}: the native driver publishes no ports on the host's addresses"),
        )
        .advice("Leave it out: from this host, nodes are reached at their own addresses. For others: kubectl port-forward --address")),
    }
}

/// What the flags say about all nodes, besides their size and version.
pub fn node_defaults(args: &Args) -> Result<NodeConfig, Fault> {
    let mut config = args.node.defaults(args.container_runtime.as_deref())?;
    if let Some(grace) = args.node_grace {
        grace::add(&mut config, grace)?;
    }
    Ok(config)
}

/// Flags that have no effect, as one warning.
pub fn ignored(args: &Args) -> Option<String> {
    let mut names = args.inert.named(Effect::Warn);
    if args.node.mounts_nothing() {
        names.push("--mount (--mount=HOST:NODE says what)".to_owned());
    }
    (!names.is_empty()).then(|| format!("These options have no effect yet: {}", names.join(", ")))
}

/// The driver asked for, else the profile's, else docker where there is an engine, else native.
pub async fn driver(ctx: &Ctx, args: &Args, old: Option<&Cluster>) -> Result<DriverKind, Fault> {
    let asked = match args.driver.as_deref() {
        None | Some("" | "auto") => {
            return Ok(match old {
                Some(old) => old.driver,
                // An engine elsewhere was named by somebody: why it cannot be reached is to be told.
                None if !Address::of_environment().is_socket() => DriverKind::Docker,
                None if core::preflight(ctx, DriverKind::Docker).await.is_ok() => DriverKind::Docker,
                // Whoever is not root cannot use the other one: what this engine lacks is to be told.
                None if !host::is_root() && Address::of_environment().connect().await.is_ok() => {
                    DriverKind::Docker
                }
                None => DriverKind::Native,
            });
        }
        Some(name) => name.parse::<DriverKind>().map_err(|()| {
            Fault::new(
                Reason::DriverUnsupportedOs,
                format!("The driver '{name}' is not supported on linux/{}", host::arch()),
            )
            .advice("Use --driver=docker, --driver=native or --driver=podman, or leave it out")
        })?,
    };
    match old {
        Some(old) if old.driver != asked => Err(Fault::new(
            Reason::DriverMismatch,
            format!(
                "The existing \"{}\" cluster was created using the \"{}\" driver, which is incompatible with requested \"{asked}\" driver.",
                old.name, old.driver
            ),
        )
        .advice(format!("Run '{}' first, or leave --driver out", ctx.hint("delete")))),
        _ => Ok(asked),
    }
}

/// A new profile may not bear the name of another profile's machine.
pub fn name_is_free(home: &Home, name: &str) -> Result<(), Fault> {
    let others = profile::list(home)?;
    // Also of a node that is not there yet: either cluster may grow.
    let clash =
        |other: &String| other != name && (names::belongs(other, name) || names::belongs(name, other));
    match others.into_iter().map(|(profile, _)| profile).find(clash) {
        Some(other) => Err(usage(format!(
            "The profile name \"{name}\" clashes with the names of the nodes of \"{other}\""
        ))
        .advice("Choose another name with -p")),
        None => Ok(()),
    }
}

pub fn disk(home: &Home) -> Result<(), Fault> {
    match host::free_bytes(home.root()) {
        Some(free) if free < MIN_FREE => Err(Fault::new(
            Reason::InsufficientStorage,
            format!(
                "Only {:.1} GiB are free in {}, less than the {} GiB that a cluster needs",
                free as f64 / GIB as f64,
                home.root().display(),
                MIN_FREE / GIB
            ),
        )
        .advice("Free some room, set MANYKUBE_HOME to a larger disk, or use --force")),
        _ => Ok(()),
    }
}

pub fn root(ctx: &Ctx, driver: DriverKind) -> Result<(), Fault> {
    if host::is_root() {
        return Ok(());
    }
    Err(Fault::new(Reason::DriverNeedsRoot, format!("The \"{driver}\" driver requires root privileges."))
        .advice(format!("Run 'sudo -E {}'", ctx.hint("start"))))
}
