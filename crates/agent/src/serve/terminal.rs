//! A terminal of the node for a command of the host's user.

use std::io;
use std::os::fd::OwnedFd;
use std::process::Stdio;

use bytes::{Bytes, BytesMut};
use protocol::PART;
use protocol::messages::{ExecInput, ExecOutput, Size, exec_input, exec_output};
use rustix::fs::{Mode, OFlags, fcntl_setfl};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::process::{Child, Command};
use tokio::time::sleep;
use tonic::{Status, Streaming};

use super::exec::{SILENCE, Sender, code};

/// What ends the input of a program that reads from a terminal.
const END_OF_INPUT: &[u8] = &[4];

pub struct Terminal {
    master: AsyncFd<OwnedFd>,
    slave: OwnedFd,
}

impl Terminal {
    pub fn open(size: Size) -> Result<Terminal, Status> {
        let open = || {
            let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
            grantpt(&master)?;
            unlockpt(&master)?;
            let name = ptsname(&master, Vec::new())?;
            let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
            let slave = rustix::fs::open(name.as_c_str(), flags, Mode::empty())?;
            tcsetwinsize(&master, window(size))?;
            fcntl_setfl(&master, OFlags::RDWR | OFlags::NONBLOCK)?;
            // SAFETY: the descriptor is owned, and stays open until it is dropped.
            let master = unsafe { AsyncFd::register(master)? };
            io::Result::Ok(Terminal { master, slave })
        };
        open().map_err(|e| Status::failed_precondition(format!("open a terminal: {e}")))
    }

    /// In a session of its own, with this terminal.
    pub fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        let slave = || self.slave.try_clone().map(Stdio::from);
        command.stdin(slave()?).stdout(slave()?).stderr(slave()?);
        // SAFETY: two system calls, which are async-signal-safe.
        unsafe {
            command.pre_exec(|| {
                rustix::process::setsid()?;
                Ok(rustix::process::ioctl_tiocsctty(std::io::stdin())?)
            });
        }
        command.spawn()
    }
}

/// Until the command has ended. A host that goes away drops the receiver: the terminal is closed, which ends the command.
pub async fn join(mut child: Child, terminal: Terminal, mut input: Streaming<ExecInput>, sender: Sender) {
    // The command has its own; while ours is open, its end would not be seen.
    let Terminal { master, slave } = terminal;
    drop(slave);
    let (mut exit, mut open, mut fed) = (None, true, true);
    while exit.is_none() || open {
        tokio::select! {
            data = read(&master), if open => match data {
                Some(data) => {
                    let said = exec_output::Kind::Stdout(data);
                    let _ = sender.send(Ok(ExecOutput { kind: Some(said) })).await;
                }
                None => open = false,
            },
            message = input.message(), if fed => fed = take(&master, message).await,
            ended = child.wait(), if exit.is_none() => exit = Some(code(ended)),
            () = sender.closed() => break,
            () = sleep(SILENCE), if exit.is_some() => break,
        }
    }
    if let Some(code) = exit {
        let _ = sender.send(Ok(ExecOutput { kind: Some(exec_output::Kind::Exit(code)) })).await;
    }
}

/// `None` when nothing has the other side open any more, which Linux calls an error.
async fn read(master: &AsyncFd<OwnedFd>) -> Option<Bytes> {
    let mut buffer = BytesMut::zeroed(PART);
    let read = |fd: &OwnedFd| rustix::io::read(fd, &mut *buffer).map_err(io::Error::from);
    let length = master.async_io(Interest::READABLE, read).await.ok().filter(|l| *l > 0)?;
    buffer.truncate(length);
    Some(buffer.freeze())
}

/// Whether more may come.
async fn take(master: &AsyncFd<OwnedFd>, message: Result<Option<ExecInput>, Status>) -> bool {
    let kind = match message {
        Ok(Some(message)) => message.kind,
        Ok(None) => {
            write(master, END_OF_INPUT).await;
            return false;
        }
        Err(_) => return false,
    };
    match kind {
        Some(exec_input::Kind::Stdin(data)) => write(master, &data).await,
        Some(exec_input::Kind::Size(size)) => drop(tcsetwinsize(master.get_ref(), window(size))),
        _ => {}
    }
    true
}

async fn write(master: &AsyncFd<OwnedFd>, mut data: &[u8]) {
    while !data.is_empty() {
        let write = |fd: &OwnedFd| rustix::io::write(fd, data).map_err(io::Error::from);
        match master.async_io(Interest::WRITABLE, write).await {
            Ok(length) => data = &data[length..],
            Err(_) => return,
        }
    }
}

fn window(size: Size) -> Winsize {
    let cut = |n: u32| u16::try_from(n).unwrap_or(u16::MAX);
    Winsize { ws_row: cut(size.rows), ws_col: cut(size.columns), ws_xpixel: 0, ws_ypixel: 0 }
}
