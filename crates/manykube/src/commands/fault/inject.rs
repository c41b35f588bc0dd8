//! Puts a fault in: first the record, then who undoes it, then the fault itself.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, Result};
use model::injected::{Harm, Injected};
use model::status::Host;
use model::{Cluster, Fault, Node, Reason};

use super::records::{Record, Records};
use super::{args, now, packets, undo, watch};
use crate::commands::cluster as common;
use crate::core;
use crate::ctx::Ctx;
use crate::report::{Event, Style};

/// A machine of the cluster that runs.
pub async fn target<'a>(ctx: &Ctx, cluster: &'a Cluster, name: &str) -> Result<&'a Node> {
    let node = common::node(cluster, Some(name))?;
    if !core::running(ctx).await?.contains(&cluster.machine(node)) {
        return Err(common::node_not_running(cluster, node, Host::Stopped).into());
    }
    Ok(node)
}

/// One of each kind for a machine: the new one takes the place of the old one.
pub async fn inject(
    ctx: &Ctx,
    cluster: &Cluster,
    machine: &str,
    harm: Harm,
    time: Option<Duration>,
) -> Result<()> {
    let since = now();
    let until = time.map(|t| since.saturating_add_unsigned(t.as_secs()));
    let fault = Injected { machine: machine.to_owned(), harm, since, until };
    let Some(mut records) = Records::open(&ctx.home, &cluster.name)? else {
        return Err(crate::state::profile::not_found(&cluster.name).into());
    };
    let old: Vec<Record> = records.list.extract_if(.., |r| r.fault.is_same(&fault)).collect();
    old.iter().try_for_each(watch::end)?;
    records.list.push(Record::new(fault.clone()));
    records.save()?;
    if until.is_some() {
        let watcher = watch::spawn(ctx, &fault)?;
        if let Some(record) = records.list.last_mut() {
            record.watcher = Some(watcher);
        }
        records.save()?;
    }
    let replaced = old.iter().map(|r| &r.fault);
    let machines = packets::machines(replaced.chain([&fault]));
    let done = apply(ctx, &fault, &records, &machines).await;
    if done.is_err() {
        // What could not be done is not to be listed; half of it may have been.
        undo::undo(ctx, Some(cluster), &mut records, |r| r.fault == fault).await?;
    }
    done?;
    let time = time.map(|t| format!(" for {} s", t.as_secs())).unwrap_or_default();
    ctx.emit(Event::info(Style::Notice, format!("{machine}: {}{time}", fault.harm.text())));
    Ok(())
}

async fn apply(ctx: &Ctx, fault: &Injected, records: &Records, machines: &BTreeSet<String>) -> Result<()> {
    let machine = &fault.machine;
    let driver = core::driver_of(ctx, machine);
    match &fault.harm {
        Harm::Killed => {
            driver.power_off(machine, Duration::ZERO).await.with_context(|| format!("kill {machine}"))
        }
        Harm::Frozen => driver.freezer().freeze(machine).await.with_context(|| format!("freeze {machine}")),
        Harm::Cut { .. } | Harm::Slow(_) => packets::tell(ctx, records, machines).await,
        Harm::DiskFull { left_mib } => fill(ctx, machine, u64::from(*left_mib) << 20).await,
        Harm::ProcessKilled { process } => kill(ctx, machine, process).await.map(drop),
    }
}

async fn fill(ctx: &Ctx, machine: &str, leave: u64) -> Result<()> {
    drivers::machine::disk::is_full(&ctx.home, machine)?;
    Ok(core::driver_of(ctx, machine).node(machine).await?.fill(Some(leave)).await?)
}

/// Kills a program once; how many processes of it there were.
pub async fn kill(ctx: &Ctx, machine: &str, process: &str) -> Result<u32> {
    let killed = core::driver_of(ctx, machine).node(machine).await?.kill(args::program(process)).await?;
    if killed.count > 0 {
        return Ok(killed.count);
    }
    Err(Fault::new(Reason::NodeFault, format!("No {process:?} runs in {machine}"))
        .advice(format!("Its programs are: {}", killed.running.join(", ")))
        .into())
}
