//! PID 1's part: a socket that the host made before the node began. Each connection gets a process.

use std::os::fd::{FromRawFd as _, OwnedFd};
use std::os::unix::net::UnixListener as StdListener;
use std::process::{Command, Stdio};
use std::rc::Rc;

use anyhow::{Context as _, Result};
use model::node_spec::CHANNEL_FD;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::spawn_local;

use crate::reaper::{Child, Reaper};

/// Only the host's root can connect. This many are a mistake of ours.
const CONNECTIONS: usize = 256;

/// Takes the inherited socket, if there is one. An engine's nodes are reached by the engine instead.
pub fn listen(reaper: Reaper) -> Result<()> {
    let Some(listener) = inherited() else { return Ok(()) };
    listener.set_nonblocking(true).context("prepare the channel")?;
    let listener = UnixListener::from_std(listener).context("listen on the channel")?;
    spawn_local(async move {
        let places = Rc::new(Semaphore::new(CONNECTIONS));
        loop {
            let Ok((stream, _)) = listener.accept().await else { continue };
            if places.available_permits() == 0 {
                tracing::warn!("the channel has {CONNECTIONS} connections: one more is refused");
                continue;
            }
            match start(&reaper, stream) {
                Ok(child) => drop(spawn_local(hold(child, places.clone()))),
                Err(e) => tracing::error!("channel: {e:#}"),
            }
        }
    });
    Ok(())
}

async fn hold(mut child: Child, places: Rc<Semaphore>) {
    let _place = places.acquire().await;
    child.wait().await;
}

fn start(reaper: &Reaper, stream: UnixStream) -> Result<Child> {
    let stream = stream.into_std().context("take a connection")?;
    let input = OwnedFd::from(stream);
    let output = input.try_clone().context("copy a connection")?;
    // The program that runs, which is not what may lie at its path by now.
    let mut command = Command::new("/proc/self/exe");
    command.args(["agent", "serve"]).stdin(Stdio::from(input)).stdout(Stdio::from(output));
    reaper.spawn(&mut command)
}

/// Whatever else is open under that number is not ours to take.
fn inherited() -> Option<StdListener> {
    // SAFETY: only looked at.
    let fd = unsafe { std::os::fd::BorrowedFd::borrow_raw(CHANNEL_FD) };
    if !rustix::net::sockopt::socket_acceptconn(fd).unwrap_or(false) {
        return None;
    }
    // SAFETY: it is open, and nothing else in this process knows of it.
    let fd = unsafe { OwnedFd::from_raw_fd(CHANNEL_FD) };
    rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::CLOEXEC).ok()?;
    Some(StdListener::from(fd))
}
