//! Takes faults back.

use anyhow::{Context as _, Result};
use model::Cluster;
use model::injected::{Harm, Injected};

use super::records::{Record, Records};
use super::{network, watch};
use crate::core;
use crate::ctx::Ctx;
use crate::report::{Event, Style};

/// Undoes those that `which` names and forgets them; what they were. Machines that were killed boot again
/// if there is a `cluster` that tells how.
pub async fn undo(
    ctx: &Ctx,
    cluster: Option<&Cluster>,
    records: &mut Records,
    which: impl Fn(&Record) -> bool,
) -> Result<Vec<Injected>> {
    let chosen: Vec<Record> = records.list.extract_if(.., |r| which(r)).collect();
    chosen.iter().try_for_each(watch::end)?;
    for Record { fault, .. } in &chosen {
        let machine = &fault.machine;
        let driver = core::driver_of(ctx, machine);
        match &fault.harm {
            Harm::Frozen => driver.faults().thaw(machine).await.with_context(|| format!("thaw {machine}"))?,
            Harm::Slow(slowness) if slowness.delay_us > 0 => driver.faults().delay(machine, None).await?,
            Harm::DiskFull { .. } => {
                drivers::machine::disk::is_free(&ctx.home, machine)?;
                // Of one that is off, the next boot gives the space back.
                if let Ok(node) = driver.node(machine).await {
                    node.fill(None).await?;
                }
            }
            Harm::Killed => {
                if let Some((cluster, node)) = cluster.and_then(|c| Some((c, c.find_node(machine)?))) {
                    core::power_on(ctx, cluster, node).await?;
                }
            }
            _ => {}
        }
    }
    if chosen.iter().any(|r| r.fault.harm.is_of_network()) {
        network::lose(ctx, records).await?;
    }
    // Last: what failed before stays on the list.
    records.save()?;
    Ok(chosen.into_iter().map(|r| r.fault).collect())
}

/// For commands after which no fault is to last: of all machines, or of one. Those that were killed stay
/// off; the command knows what is to become of them.
pub async fn lift(ctx: &Ctx, profile: &str, machine: Option<&str>) -> Result<()> {
    let Some(mut records) = Records::open(&ctx.home, profile)? else { return Ok(()) };
    let meant = |r: &Record| machine.is_none_or(|m| concerns(&r.fault, m));
    let undone = undo(ctx, None, &mut records, meant).await?;
    undone.iter().filter(|f| f.harm != Harm::Killed).for_each(|fault| tell(ctx, fault));
    Ok(())
}

pub fn tell(ctx: &Ctx, fault: &Injected) {
    let message = match fault.harm {
        Harm::Killed => format!("{} boots again", fault.machine),
        _ => format!("Undone: {} {}", fault.machine, fault.harm.text()),
    };
    ctx.emit(Event::info(Style::Option, message));
}

/// A cut has two ends.
pub fn concerns(fault: &Injected, machine: &str) -> bool {
    let at_other_end = matches!(&fault.harm, Harm::Cut { from } if from.iter().any(|m| m == machine));
    fault.machine == machine || at_other_end
}
