//! `pause`: on every node that runs, the kubelet is ended and containers are frozen; `unpause` undoes it.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use drivers::MachineState;
use futures::future::try_join_all;
use model::Cluster;
use model::node_spec::{HOLD_NAME, Hold, NodeFile, RUN_DIR};

use super::{driver, driver_of, look};
use crate::ctx::Ctx;

/// An agent ends or starts its kubelet within a second or two.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(50);
/// Stands for all namespaces.
pub const ALL: &str = "*";

/// `$1` is what to do (pause or resume), `$2` the state of tasks that it is done to, then the namespaces.
/// Prints how many containers it was done to. Containers of one node do not wait for each other.
const SCRIPT: &str = r#"
verb=$1 state=$2; shift 2
ctr="ctr -n k8s.io"
set -f
if [ "$1" = '*' ]; then wanted=$($ctr containers list -q)
else wanted=$(for ns; do $ctr containers list -q "labels.\"io.kubernetes.pod.namespace\"==$ns"; done); fi || exit 1
tasks=$($ctr tasks list | awk -v s="$state" '$3 == s { print $1 }') || exit 1
done=0; pids=
for id in $wanted; do
    case " $(echo $tasks) " in *" $id "*) $ctr tasks "$verb" "$id" & pids="$pids $!"; done=$((done + 1)) ;; esac
done
for pid in $pids; do wait "$pid" || failed=1; done
echo "$done"
[ -z "$failed" ]
"#;

/// The number of containers that were frozen.
pub async fn pause(ctx: &Ctx, cluster: &Cluster, namespaces: &[String]) -> Result<usize> {
    let machines = running(ctx, cluster).await?;
    let hold = Hold { services: vec!["kubelet".to_owned()], namespaces: namespaces.to_vec() };
    let counts = try_join_all(machines.iter().map(|machine| async {
        // First who would mend what looks broken.
        tell(ctx, machine, &hold).await?;
        containers(ctx, machine, "pause", "RUNNING", namespaces).await
    }));
    Ok(counts.await?.into_iter().sum())
}

/// The number of containers that go on.
pub async fn unpause(ctx: &Ctx, cluster: &Cluster, namespaces: &[String]) -> Result<usize> {
    let machines = running(ctx, cluster).await?;
    let counts = try_join_all(machines.iter().map(|machine| async {
        let count = containers(ctx, machine, "resume", "PAUSED", namespaces).await?;
        tell(ctx, machine, &Hold::default()).await?;
        Ok::<_, anyhow::Error>(count)
    }));
    Ok(counts.await?.into_iter().sum())
}

/// Whether anything of the cluster stands still.
pub async fn is_paused(ctx: &Ctx, cluster: &Cluster) -> Result<bool> {
    for machine in running(ctx, cluster).await? {
        if driver_of(ctx, &machine).state(&machine).await.is_some_and(|a| a.hold != Hold::default()) {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn running(ctx: &Ctx, cluster: &Cluster) -> Result<Vec<String>> {
    let machines = look::machines_of(&cluster.name, Some(cluster), &driver(ctx, cluster.driver)).await?;
    Ok(machines.into_iter().filter(|(_, state)| *state == MachineState::Running).map(|(m, _)| m).collect())
}

/// Tells the agent, and waits until it has done so.
async fn tell(ctx: &Ctx, machine: &str, hold: &Hold) -> Result<()> {
    let driver = driver_of(ctx, machine);
    let file = NodeFile::new(format!("{RUN_DIR}/{HOLD_NAME}"), 0o600, serde_json::to_vec(hold)?);
    driver.node(machine).await?.put(&[file]).await?;
    let began = Instant::now();
    loop {
        let agent = driver.state(machine).await;
        let runs = agent.as_ref().and_then(|a| a.service("kubelet")).is_some_and(|s| s.running);
        if agent.is_some_and(|a| a.hold == *hold) && runs != hold.holds("kubelet") {
            return Ok(());
        }
        if began.elapsed() > PATIENCE {
            let wish = if hold.holds("kubelet") { "stop" } else { "start" };
            bail!("the agent of {machine} did not {wish} its kubelet within {} s", PATIENCE.as_secs());
        }
        tokio::time::sleep(LOOK).await;
    }
}

async fn containers(
    ctx: &Ctx,
    machine: &str,
    verb: &str,
    state: &str,
    namespaces: &[String],
) -> Result<usize> {
    let words = ["/bin/sh", "-c", SCRIPT, "pause", verb, state].map(str::to_owned);
    let argv = [words.to_vec(), namespaces.to_vec()].concat();
    let output = driver_of(ctx, machine).run(machine, &argv).await?;
    if output.code != 0 {
        bail!("{verb} the containers of {machine}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().with_context(|| format!("understand {machine}'s answer {text:?}"))
}
