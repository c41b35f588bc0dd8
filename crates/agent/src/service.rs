//! Services that run as long as the node does: started again when they end, slower each time.

use std::process::{Command, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use model::node_spec::{Kubelet, LOG_DIR, ServiceState};
use tokio::net::UnixStream;
use tokio::task::{JoinHandle, spawn_local};
use tokio::time::sleep;

use crate::reaper::{Child, Reaper};
use crate::state::Node;

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// Whoever ran this long is not in a crash loop.
const HEALTHY: Duration = Duration::from_secs(30);
/// Bytes of a log.
const LAST_WORDS: usize = 16 << 10;
const CONTAINERD_SOCKET: &str = "/run/containerd/containerd.sock";

pub struct Recipe {
    pub name: &'static str,
    /// Made anew for each start: files it is made from may have changed.
    command: Box<dyn FnMut() -> Result<Command>>,
}

impl Recipe {
    pub fn new(name: &'static str, command: impl FnMut() -> Result<Command> + 'static) -> Recipe {
        Recipe { name, command: Box::new(command) }
    }
}

pub fn containerd() -> Recipe {
    Recipe { name: "containerd", command: Box::new(|| Ok(Command::new("containerd"))) }
}

pub fn kubelet(kubelet: &Kubelet) -> Recipe {
    let kubelet = kubelet.clone();
    Recipe {
        name: "kubelet",
        command: Box::new(move || {
            let Some((program, args)) = kubelet.argv.split_first() else { bail!("no kubelet command") };
            let mut command = Command::new(program);
            command.args(args).envs(kubelet.env.iter().cloned());
            for file in &kubelet.env_files {
                let text = std::fs::read_to_string(file).unwrap_or_default();
                command.args(env_file_args(&text));
            }
            Ok(command)
        }),
    }
}

pub struct Service {
    task: JoinHandle<()>,
}

impl Service {
    pub fn start(node: &Rc<Node>, reaper: &Reaper, recipe: Recipe) -> Service {
        Service { task: spawn_local(supervise(node.clone(), reaper.clone(), recipe)) }
    }

    pub async fn forever(self) {
        let _ = self.task.await;
    }
}

async fn supervise(node: Rc<Node>, reaper: Reaper, mut recipe: Recipe) {
    let mut pause = FIRST_PAUSE;
    let mut restarts = 0;
    let mut hold = node.hold.subscribe();
    while !node.stopping.get() {
        let held = hold.borrow_and_update().holds(recipe.name);
        if held {
            let _ = hold.wait_for(|h| !h.holds(recipe.name)).await;
            pause = FIRST_PAUSE;
            continue;
        }
        let began = Instant::now();
        let ended = match spawn(&reaper, &mut recipe) {
            Ok(mut child) => {
                note(&node, &recipe, Some(child.pid), restarts, None);
                let name = recipe.name;
                let well = || drop(node.state.borrow_mut().unwell.remove(name));
                after(HEALTHY, well, child.wait()).await.to_string()
            }
            Err(e) => format!("{e:#}"),
        };
        if began.elapsed() > HEALTHY {
            pause = FIRST_PAUSE;
        }
        note(&node, &recipe, None, restarts, Some(ended.clone()));
        if node.stopping.get() {
            return;
        }
        if hold.borrow().holds(recipe.name) {
            continue;
        }
        tracing::warn!("{} ended ({ended}), again in {pause:?}", recipe.name);
        if pause == LONGEST_PAUSE {
            let problem =
                format!("{} ends again and again ({ended}): {}", recipe.name, last_words(recipe.name));
            node.state.borrow_mut().unwell.insert(recipe.name, problem);
        }
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
        restarts += 1;
    }
}

/// Waits for the end, and says so when there was none for so long.
async fn after<T>(long: Duration, say: impl FnOnce(), end: impl Future<Output = T>) -> T {
    let mut end = std::pin::pin!(end);
    tokio::select! {
        biased;
        ended = &mut end => return ended,
        () = sleep(long) => say(),
    }
    end.await
}

fn spawn(reaper: &Reaper, recipe: &mut Recipe) -> Result<Child> {
    let log = format!("{LOG_DIR}/{}.log", recipe.name);
    let file = fs_err::OpenOptions::new().create(true).append(true).open(log)?.into_parts().0;
    let mut command = (recipe.command)()?;
    command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
    reaper.spawn(&mut command)
}

/// The line of its log that says most, which is the last one that is no part of a trace or a usage text.
fn last_words(name: &str) -> String {
    let text = std::fs::read(format!("{LOG_DIR}/{name}.log")).unwrap_or_default();
    let text = String::from_utf8_lossy(&text[text.len().saturating_sub(LAST_WORDS)..]).into_owned();
    let says = |line: &&str| line.starts_with('E') || line.contains("err") || line.contains("ailed");
    text.lines().rev().find(says).or_else(|| text.lines().last()).unwrap_or("it said nothing").to_owned()
}

fn note(node: &Node, recipe: &Recipe, pid: Option<i32>, restarts: u32, last_exit: Option<String>) {
    let state = ServiceState {
        name: recipe.name.to_owned(),
        running: pid.is_some(),
        pid: pid.and_then(|p| u32::try_from(p).ok()),
        restarts,
        last_exit,
    };
    node.state.borrow_mut().services.insert(recipe.name, state);
}

/// Ready when it takes connections: it opens its socket after its plugins are loaded.
pub async fn containerd_answers() -> Result<()> {
    while UnixStream::connect(CONTAINERD_SOCKET).await.is_err() {
        sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

/// The words of the variables in a systemd-style environment file, as kubeadm writes it:
/// `KUBELET_KUBEADM_ARGS="--a=b --c"`.
fn env_file_args(text: &str) -> Vec<String> {
    text.lines()
        .filter_map(|line| line.split_once('='))
        .flat_map(|(_, value)| value.trim().trim_matches('"').split_ascii_whitespace())
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_ran_long_enough_is_well() {
        let long = Duration::from_millis(20);
        let mut well = false;
        assert_eq!(after(long, || well = true, async { 1 }).await, 1);
        assert!(!well, "it ended at once");
        after(long, || well = true, sleep(long * 3)).await;
        assert!(well);
    }

    #[test]
    fn kubeadms_flags_become_arguments() {
        let text = "KUBELET_KUBEADM_ARGS=\"--node-ip=192.168.49.2 --pod-infra-container-image=x:1\"\n";
        assert_eq!(env_file_args(text), ["--node-ip=192.168.49.2", "--pod-infra-container-image=x:1"]);
        assert!(env_file_args("\n# nothing\n").is_empty());
    }
}
