//! `native-enter PID CGROUP-JSON tty|plain ARGV…`: runs a command in a machine and ends as it ended.
//!
//! A program of its own, because entering a pid namespace needs a fork from a single thread.

use std::ffi::{CString, OsString};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use nix::sched::{CloneFlags, setns};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, chdir, execvpe, fork};
use rustix::process::{PidfdFlags, pidfd_open};

use super::cgroup::{Cgroup, affinity, join};
use super::pty;
use crate::user_namespace;

pub fn main(args: &[OsString]) -> ExitCode {
    match enter(args) {
        Ok(code) => ExitCode::from(code),
        Err(e) => {
            eprintln!("{e:#}");
            ExitCode::from(125)
        }
    }
}

fn enter(args: &[OsString]) -> Result<u8> {
    let [pid, cgroup, mode, argv @ ..] = args else {
        bail!("usage: {} PID CGROUP tty|plain ARGV…", super::ENTER)
    };
    if argv.is_empty() {
        bail!("no command to run in the machine");
    }
    let pid: i32 = pid.to_str().and_then(|p| p.parse().ok()).context("not a pid")?;
    let cgroup: Cgroup = serde_json::from_slice(cgroup.as_bytes()).context("not a cgroup")?;
    let argv: Vec<CString> = argv.iter().map(|a| CString::new(a.as_bytes())).collect::<Result<_, _>>()?;

    let target = rustix::process::Pid::from_raw(pid).context("not a pid")?;
    let machine = pidfd_open(target, PidfdFlags::empty()).context("find the machine")?;
    // Opened now: the paths mean nothing any more once the namespaces are entered. Used by the child
    // only: this process would outlive the machine by a moment and keep its cgroup from being removed.
    let mut doors = cgroup.doors()?;
    if user_namespace::is_own() {
        // The machine's cgroup may not be able to say on which processors it runs.
        affinity::follow(target)?;
    }
    let all = CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWUTS
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWCGROUP
        | CloneFlags::CLONE_NEWPID;
    setns(&machine, all).context("enter the machine")?;
    chdir("/").context("enter /")?;
    if mode == "tty" { pty::run(&argv, &mut doors) } else { plain(&argv, &mut doors) }
}

fn plain(argv: &[CString], doors: &mut [File]) -> Result<u8> {
    // SAFETY: this process has one thread, so the child may do what it likes.
    match unsafe { fork() }.context("fork")? {
        ForkResult::Child => exec(argv, doors),
        ForkResult::Parent { child } => wait(child),
    }
}

/// Never returns: what cannot be run ends as in a shell.
pub fn exec(argv: &[CString], doors: &mut [File]) -> ! {
    // Whoever waits for the command and is killed takes it along.
    let prepared =
        set_pdeathsig(Signal::SIGKILL).context("tie the command to its caller").and_then(|()| join(doors));
    if let Err(e) = prepared {
        eprintln!("{e:#}");
        std::process::exit(126);
    }
    let term = std::env::var("TERM").unwrap_or_else(|_| "xterm".into());
    let environment: Vec<CString> = [
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned(),
        "HOME=/root".to_owned(),
        "USER=root".to_owned(),
        "KUBECONFIG=/etc/kubernetes/admin.conf".to_owned(),
        format!("TERM={term}"),
    ]
    .into_iter()
    .filter_map(|v| CString::new(v).ok())
    .collect();
    // execvpe looks in this process' PATH, which is the host's.
    // SAFETY: single-threaded, between fork and exec.
    unsafe { std::env::set_var("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin") };
    let failure = match execvpe(&argv[0], argv, &environment) {
        Err(e) => e,
        Ok(never) => match never {},
    };
    eprintln!("{}: {}", argv[0].to_string_lossy(), failure.desc());
    std::process::exit(if failure == nix::errno::Errno::ENOENT { 127 } else { 126 });
}

pub fn wait(child: Pid) -> Result<u8> {
    loop {
        match waitpid(child, None) {
            Ok(WaitStatus::Exited(_, code)) => return Ok(u8::try_from(code & 0xff).unwrap_or(1)),
            Ok(WaitStatus::Signaled(_, signal, _)) => return Ok(128 + signal as u8),
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(e) => return Err(e).context("wait for the command"),
        }
    }
}
