//! The faults that last, for `fault list` and `status`.

use std::collections::BTreeSet;

use anyhow::Result;
use drivers::Handle;
use jiff::Timestamp;
use model::injected::{Harm, Injected};
use model::status::{FaultShown, NodeStatus};

use super::now;
use super::records::{self, Record};
use crate::commands::print;
use crate::core;
use crate::ctx::Ctx;
use crate::report::Output;

pub async fn list(ctx: &Ctx, output: Output) -> Result<()> {
    let now = now();
    let all = lasting(ctx, &ctx.profile, &core::running(ctx).await?);
    print(&match output {
        Output::Json => {
            let entry = |f: &Injected| {
                let mut entry = serde_json::json!(shown(f, now));
                entry["Node"] = f.machine.clone().into();
                entry
            };
            serde_json::Value::from_iter(all.iter().map(entry)).to_string() + "\n"
        }
        Output::Text => all.iter().map(|f| format!("{}\t{}\n", f.machine, f.text(now))).collect(),
    });
    Ok(())
}

/// Adds to each node what is wrong with it.
pub fn add(ctx: &Ctx, profile: &str, nodes: &mut [NodeStatus]) {
    let runs = |n: &&NodeStatus| !["Stopped", "Nonexistent"].contains(&n.host.as_str());
    let running = nodes.iter().filter(runs).map(|n| n.name.clone()).collect();
    let (now, all) = (now(), lasting(ctx, profile, &running));
    for node in nodes {
        let own = all.iter().filter(|f| f.machine == node.name);
        node.faults = own.map(|f| shown(f, now)).collect();
    }
}

/// Those that are still true: a machine that was killed may have been started, a watcher may have died.
fn lasting(ctx: &Ctx, profile: &str, running: &BTreeSet<String>) -> Vec<Injected> {
    let lasts = |r: &Record| match r.fault.harm {
        Harm::Killed => !running.contains(&r.fault.machine),
        Harm::ProcessKilled { .. } => {
            r.watcher.as_ref().is_some_and(|w| Handle::open(w).is_ok_and(|h| h.is_some()))
        }
        _ => true,
    };
    records::read(&ctx.home, profile).into_iter().filter(lasts).map(|r| r.fault).collect()
}

fn shown(fault: &Injected, now: i64) -> FaultShown {
    let time = |second: i64| Timestamp::from_second(second).map(|t| t.to_string()).unwrap_or_default();
    FaultShown {
        kind: fault.harm.kind().to_owned(),
        text: fault.text(now),
        since: time(fault.since),
        until: fault.until.map(time),
    }
}
