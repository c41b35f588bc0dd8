//! The channel into a machine: a socket that the launcher makes in the machine's directory, where only root comes, and
//! that the agent inherits. The machine itself has no way to that directory.

use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::net::UnixListener;

use anyhow::{Context as _, Result};
use base::Stream;
use model::node_spec::CHANNEL_FD;
use nix::libc;
use rustix::io::{FdFlags, fcntl_setfd};
use tokio::net::UnixStream;

use crate::driver::NoStream;
use crate::machine::Paths;

const SOCKET: &str = "channel.sock";

/// The socket, under the number that the agent expects. To be called while nothing else is open.
pub fn listen(paths: &Paths) -> Result<OwnedFd> {
    let dir = fs_err::File::open(paths.dir())?;
    let path = paths.dir().join(SOCKET);
    base::atomic::remove(&path)?;
    // By the directory's descriptor, because a socket's path may not be longer than 107 bytes.
    let listener = UnixListener::bind(format!("/proc/self/fd/{}/{SOCKET}", dir.as_raw_fd()));
    let listener = OwnedFd::from(listener.with_context(|| format!("make the socket {}", path.display()))?);
    fs_err::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    if listener.as_raw_fd() == CHANNEL_FD {
        return Ok(listener);
    }
    // SAFETY: what has that number is closed, which is the directory or something that the command was given.
    let moved = unsafe { libc::dup3(listener.as_raw_fd(), CHANNEL_FD, libc::O_CLOEXEC) };
    if moved != CHANNEL_FD {
        return Err(std::io::Error::last_os_error()).context("move the socket");
    }
    if dir.as_raw_fd() == CHANNEL_FD {
        std::mem::forget(dir);
    }
    // SAFETY: it was just made.
    Ok(unsafe { OwnedFd::from_raw_fd(CHANNEL_FD) })
}

/// The program that is run next has it.
pub fn hand_over(channel: OwnedFd) -> Result<()> {
    fcntl_setfd(&channel, FdFlags::empty()).context("hand over the channel")?;
    std::mem::forget(channel);
    Ok(())
}

pub async fn connect(machine: &str, paths: &Paths) -> Result<Stream, NoStream> {
    let silent = |e: std::io::Error| NoStream::Silent { machine: machine.to_owned(), why: e.to_string() };
    let dir = std::fs::File::open(paths.dir()).map_err(silent)?;
    match UnixStream::connect(format!("/proc/self/fd/{}/{SOCKET}", dir.as_raw_fd())).await {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Err(NoStream::Old(machine.to_owned())),
        stream => Ok(Box::new(stream.map_err(silent)?)),
    }
}
