//! Takes faults back.

use anyhow::{Context as _, Result};
use model::Cluster;
use model::injected::{Harm, Injected};

use super::records::{Record, Records};
use super::{packets, watch};
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
    // Those of an earlier boot of the host are over, but nodes that were off ever since do not know.
    let machines = packets::machines(chosen.iter().map(|r| &r.fault));
    let of_this_boot: Vec<Injected> =
        chosen.into_iter().filter(Record::is_of_this_boot).map(|r| r.fault).collect();
    // Who is frozen can do nothing, and who boots is to know before.
    for Injected { machine, .. } in of_this_boot.iter().filter(|f| f.harm == Harm::Frozen) {
        let thawed = core::driver_of(ctx, machine).freezer().thaw(machine).await;
        thawed.with_context(|| format!("thaw {machine}"))?;
    }
    packets::tell(ctx, records, &machines).await?;
    for fault in &of_this_boot {
        let machine = &fault.machine;
        match &fault.harm {
            Harm::DiskFull { .. } => {
                drivers::machine::disk::is_free(&ctx.home, machine)?;
                // Of one that is off, the next boot gives the space back.
                if let Ok(node) = core::driver_of(ctx, machine).node(machine).await {
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
    // Last: what failed before stays on the list.
    records.save()?;
    Ok(of_this_boot)
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

/// The same before nodes are taken down: one whose agent does not answer can be stopped and deleted all the same. The
/// fault stays on the list, and the next start undoes it.
pub async fn lift_if_possible(ctx: &Ctx, profile: &str, machine: Option<&str>) {
    if let Err(e) = lift(ctx, profile, machine).await {
        ctx.warn(format!("A fault could not be undone: {e:#}"));
    }
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
