//! What all faults of a profile together do to its network.

use anyhow::{Context as _, Result};
use drivers::Loss;
use model::injected::{Harm, Injected, LOSS_OF};

use super::records::Records;
use crate::core;
use crate::ctx::Ctx;

pub async fn lose(ctx: &Ctx, records: &Records) -> Result<()> {
    let losses: Vec<Loss> = records.all().flat_map(losses).collect();
    // Without any, all that is left to do is the same whoever has the bridge.
    let machine = records.all().next().map_or("", |fault| &fault.machine);
    let driver = core::driver_of(ctx, machine);
    driver.faults().lose(&records.profile, &losses).await.context("change what the bridge lets through")
}

fn losses(fault: &Injected) -> Vec<Loss> {
    let machine = || fault.machine.clone();
    match &fault.harm {
        Harm::Cut { from } if from.is_empty() => vec![Loss::Of(machine())],
        Harm::Cut { from } => from.iter().map(|other| Loss::Between(machine(), other.clone())).collect(),
        Harm::Slow(slowness) if slowness.loss == LOSS_OF => vec![Loss::Of(machine())],
        Harm::Slow(slowness) if slowness.loss > 0 => vec![Loss::Some(machine(), slowness.loss)],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost() {
        let of = |harm| losses(&Injected { machine: "a".into(), harm, since: 0, until: None });
        assert!(of(Harm::Frozen).is_empty());
        assert_eq!(of(Harm::Cut { from: vec![] }), [Loss::Of("a".into())]);
        let two = vec!["b".into(), "c".into()];
        assert_eq!(of(Harm::Cut { from: two }).len(), 2);
    }
}
