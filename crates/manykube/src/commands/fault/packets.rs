//! What all faults of a profile together do to the packets of each node. The nodes do that themselves.
//!
//! Two nodes that are cut from each other both have rules. The rules of one would stop all that is sent from one to the
//! other, but the other would still hear what is sent to all; and so the cut is whole while one of the two is off.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::{Context as _, Result};
use drivers::machine::{self, files};
use futures::future::join_all;
use model::injected::{Harm, Injected, PacketFaults};
use model::node_spec::{NodeFile, PACKET_FAULTS_PATH};
use model::{Cluster, Fault, Reason};

use super::records::Records;
use crate::core;
use crate::ctx::Ctx;
use crate::state::profile;

/// A node runs a program or two for it, which takes a moment on a busy host.
const ANSWER: Duration = Duration::from_secs(30);

/// The machines that have something to do with these faults.
pub fn machines<'a>(faults: impl Iterator<Item = &'a Injected>) -> BTreeSet<String> {
    let of = |fault: &'a Injected| match &fault.harm {
        Harm::Cut { from } => [std::slice::from_ref(&fault.machine), from].concat(),
        Harm::Slow(_) => vec![fault.machine.clone()],
        _ => Vec::new(),
    };
    faults.flat_map(of).collect()
}

/// These machines do what the records say by now, whether they run or not.
pub async fn tell(ctx: &Ctx, records: &Records, machines: &BTreeSet<String>) -> Result<()> {
    let lasting: Vec<&Injected> = records.of_this_boot().collect();
    // Without a fault that lasts no address is needed: a profile that cannot be read can be deleted.
    let cluster = match lasting.iter().any(|f| f.harm.is_of_network()) {
        true => Some(profile::require(&ctx.home, &records.profile)?.cluster),
        false => None,
    };
    let address = |machine: &str| cluster.as_ref().and_then(|c: &Cluster| Some(c.find_node(machine)?.ip));
    let told = machines.iter().map(async |machine| {
        let faults = of_machine(machine, &lasting, address);
        tell_one(ctx, machine, &faults).await.with_context(|| format!("change what {machine} loses"))
    });
    join_all(told).await.into_iter().collect()
}

async fn tell_one(ctx: &Ctx, machine: &str, faults: &PacketFaults) -> Result<()> {
    // One that was removed loses nothing.
    if machine::driver_of(&ctx.home, machine).is_none() {
        return Ok(());
    }
    let driver = core::driver_of(ctx, machine);
    let frozen = driver.is_frozen(machine).await;
    if frozen {
        // Nothing in it can do anything otherwise.
        driver.freezer().thaw(machine).await?;
    }
    let told = match driver.node(machine).await {
        Ok(node) => {
            tokio::time::timeout(ANSWER, node.packets(faults)).await.context("its agent does not answer")
        }
        Err(e) if core::is_off(&e) => return keep(ctx, machine, faults),
        Err(e) => Err(e),
    };
    if frozen {
        driver.freezer().freeze(machine).await?;
    }
    if told?? {
        return Ok(());
    }
    let message = "Packets cannot be delayed here: this kernel has no netem (CONFIG_NET_SCH_NETEM).";
    Err(Fault::new(Reason::HostUnsupported, message)
        .advice("Use --loss alone, which needs none, or load it where there is one: modprobe sch_netem")
        .into())
}

/// For the next boot of a machine that is off.
fn keep(ctx: &Ctx, machine: &str, faults: &PacketFaults) -> Result<()> {
    if faults.is_none() {
        return files::remove(&ctx.home, machine, PACKET_FAULTS_PATH);
    }
    files::write(&ctx.home, machine, &NodeFile::new(PACKET_FAULTS_PATH, 0o600, serde_json::to_vec(faults)?))
}

fn of_machine(
    machine: &str,
    lasting: &[&Injected],
    address: impl Fn(&str) -> Option<Ipv4Addr>,
) -> PacketFaults {
    let mut all = PacketFaults::default();
    for fault in lasting {
        let own = fault.machine == machine;
        match &fault.harm {
            Harm::Cut { from } if own && from.is_empty() => all.cut = true,
            Harm::Cut { from } if own => all.cut_from.extend(from.iter().filter_map(|other| address(other))),
            Harm::Cut { from } if from.iter().any(|other| other == machine) => {
                all.cut_from.extend(address(&fault.machine));
            }
            Harm::Slow(slowness) if own => all.slowness = *slowness,
            _ => {}
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use model::injected::Slowness;

    use super::*;

    fn fault(machine: &str, harm: Harm) -> Injected {
        Injected { machine: machine.into(), harm, since: 0, until: None }
    }

    fn ip(machine: &str) -> Ipv4Addr {
        [192, 168, 49, machine.as_bytes()[0] - b'a' + 2].into()
    }

    #[test]
    fn faults_add_up_node_by_node() {
        let slowness = Slowness { loss: 500, ..Slowness::default() };
        let all = [
            fault("a", Harm::Cut { from: vec!["b".into(), "c".into()] }),
            fault("b", Harm::Slow(slowness)),
            fault("c", Harm::Cut { from: vec![] }),
            fault("c", Harm::Frozen),
            fault("d", Harm::Killed),
        ];
        let lasting: Vec<&Injected> = all.iter().collect();
        let of = |machine: &str| of_machine(machine, &lasting, |m| Some(ip(m)));
        let from = |machines: &[&str]| machines.iter().map(|m| ip(m)).collect();
        assert_eq!(of("a"), PacketFaults { cut_from: from(&["b", "c"]), ..PacketFaults::default() });
        assert_eq!(of("b"), PacketFaults { cut_from: from(&["a"]), slowness, cut: false });
        assert_eq!(of("c"), PacketFaults { cut: true, cut_from: from(&["a"]), ..PacketFaults::default() });
        assert!(of("d").is_none());
    }

    #[test]
    fn both_ends_of_a_cut_are_told() {
        let cut = fault("a", Harm::Cut { from: vec!["b".into()] });
        let frozen = fault("c", Harm::Frozen);
        assert_eq!(machines([&cut, &frozen].into_iter()), ["a", "b"].map(str::to_owned).into());
    }
}
