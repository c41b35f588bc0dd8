//! A terminal of the node for a command in the node, joined to the user's own.

use std::ffi::CString;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};

use anyhow::{Context, Result};
use nix::unistd::{ForkResult, Pid, fork, setsid};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::ioctl_tiocsctty;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{tcgetwinsize, tcsetwinsize};

use super::enter::{exec, wait};
use crate::terminal::Raw;

/// Runs a command on a new terminal of this mount namespace until it ends.
pub fn run(argv: &[CString], doors: &mut [File]) -> Result<u8> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).context("open a terminal in the node")?;
    grantpt(&master).context("grant the terminal")?;
    unlockpt(&master).context("unlock the terminal")?;
    let name = ptsname(&master, Vec::new()).context("name of the terminal")?;
    copy_size(&master);
    // SAFETY: this process has one thread, so the child may do what it likes.
    match unsafe { fork() }.context("fork")? {
        ForkResult::Child => {
            let attached = attach(&name.to_string_lossy());
            drop(master);
            match attached {
                Ok(()) => exec(argv, doors),
                Err(e) => {
                    eprintln!("{e:#}");
                    std::process::exit(126);
                }
            }
        }
        ForkResult::Parent { child } => relay(&master, child),
    }
}

fn attach(name: &str) -> Result<()> {
    setsid().context("start a session")?;
    let slave = fs_err::OpenOptions::new().read(true).write(true).open(name)?;
    ioctl_tiocsctty(&slave).context("take the terminal")?;
    nix::unistd::dup2_stdin(&slave)?;
    nix::unistd::dup2_stdout(&slave)?;
    nix::unistd::dup2_stderr(&slave)?;
    Ok(())
}

fn copy_size(master: &OwnedFd) {
    if let Ok(size) = tcgetwinsize(std::io::stdin()) {
        let _ = tcsetwinsize(master, size);
    }
}

/// Copies both ways until the command's side is closed. The window size is looked at again with
/// every key, which is when a changed size matters.
fn relay(master: &OwnedFd, child: Pid) -> Result<u8> {
    let raw = Raw::enter();
    let mut master_file = std::fs::File::from(master.try_clone().context("copy the terminal")?);
    let (mut stdin, mut stdout) = (std::io::stdin(), std::io::stdout());
    let mut open = true;
    let mut buffer = [0u8; 8192];
    loop {
        let mut fds =
            [PollFd::new(master, PollFlags::IN), PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN)];
        let watched = if open { &mut fds[..] } else { &mut fds[..1] };
        match poll(watched, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e).context("wait for the terminal"),
        }
        let (from_node, from_user) = (fds[0].revents(), fds[1].revents());
        if !from_node.is_empty() {
            // EIO is how Linux says that the other side has closed.
            let n = master_file.read(&mut buffer).unwrap_or(0);
            if n == 0 {
                break;
            }
            stdout.write_all(&buffer[..n])?;
            stdout.flush()?;
        }
        if open && !from_user.is_empty() {
            copy_size(master);
            let n = stdin.read(&mut buffer)?;
            if n == 0 {
                open = false;
                master_file.write_all(&[4])?;
            } else {
                master_file.write_all(&buffer[..n])?;
            }
        }
    }
    drop(raw);
    wait(child)
}
