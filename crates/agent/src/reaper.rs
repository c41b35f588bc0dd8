//! Every process of the node that loses its parent becomes a child of ours and must be waited for.
//!
//! One place waits for all of them. A child of our own is registered in the same breath as it is
//! spawned: with one thread, the reaper cannot run in between, so no exit is ever missed.

use std::cell::RefCell;
use std::collections::HashMap;
use std::process::Command;
use std::rc::Rc;

use anyhow::{Context, Result};
use nix::errno::Errno;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use tokio::task::spawn_local;

#[derive(Clone)]
pub struct Reaper {
    waiting: Rc<RefCell<HashMap<i32, oneshot::Sender<Exit>>>>,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    Signal(i32),
}

/// A process of our own.
pub struct Child {
    pub pid: i32,
    exit: oneshot::Receiver<Exit>,
}

impl Reaper {
    pub fn start() -> Result<Reaper> {
        let reaper = Reaper { waiting: Rc::default() };
        let mut children = signal(SignalKind::child()).context("listen for SIGCHLD")?;
        let waiting = reaper.waiting.clone();
        spawn_local(async move {
            loop {
                reap(&waiting);
                if children.recv().await.is_none() {
                    return;
                }
            }
        });
        Ok(reaper)
    }

    pub fn spawn(&self, command: &mut Command) -> Result<Child> {
        let child = command.spawn().with_context(|| format!("run {}", command.get_program().display()))?;
        let pid = i32::try_from(child.id())?;
        let (sender, exit) = oneshot::channel();
        self.waiting.borrow_mut().insert(pid, sender);
        Ok(Child { pid, exit })
    }
}

impl Child {
    pub async fn wait(&mut self) -> Exit {
        // The sender is only dropped by the reaper's end, that is with this process.
        (&mut self.exit).await.unwrap_or(Exit::Signal(0))
    }
}

impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Exit::Code(code) => write!(f, "exit code {code}"),
            Exit::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}

fn reap(waiting: &RefCell<HashMap<i32, oneshot::Sender<Exit>>>) {
    loop {
        let (pid, exit) = match waitpid(Pid::from_raw(-1), Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(pid, code)) => (pid, Exit::Code(code)),
            Ok(WaitStatus::Signaled(pid, signal, _)) => (pid, Exit::Signal(signal as i32)),
            Ok(WaitStatus::StillAlive) | Err(Errno::ECHILD) => return,
            Ok(_) | Err(Errno::EINTR) => continue,
            Err(e) => {
                tracing::error!("wait for children: {e}");
                return;
            }
        };
        if let Some(sender) = waiting.borrow_mut().remove(&pid.as_raw()) {
            let _ = sender.send(exit);
        }
    }
}
