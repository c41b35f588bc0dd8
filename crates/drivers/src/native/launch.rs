//! `native-launch DIR`: becomes a machine.
//!
//! ```text
//! driver --spawn--> launcher: enters the cgroup, makes namespaces, forks
//!                      |  init (pid 1 of the node): waits for "recorded"
//!                      |  records init's identity, says "recorded", hands init's pid to the driver
//!                      |  init: mounts, pivot_root, exec agent   (the pipe closes: done)
//!                   launcher ends; the machine goes on without it
//! ```
//! A launcher that dies before the record is written takes the unrecorded init with it (its pipe
//! closes), so there is never a machine that nobody knows of.

use std::ffi::{CString, OsString};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{ForkResult, execve, fork, sethostname, setsid};
use serde::{Deserialize, Serialize};

use super::disk::{self, Disk};
use super::{cgroup, connect, mounts};
use crate::driver::Bind;
use crate::machine::Paths;
use crate::process;

/// Handed to whoever becomes the machine: all it needs, because it starts with nothing.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Launch {
    pub machine: String,
    pub dir: PathBuf,
    pub image_rootfs: PathBuf,
    /// The container images of the node image.
    pub images: PathBuf,
    pub agent: PathBuf,
    #[serde(default)]
    pub binds: Vec<Bind>,
    pub cgroup: super::cgroup::Cgroup,
    /// Of the host, by number: all that it may run on, where the cgroup cannot say so.
    #[serde(default)]
    pub processors: Vec<usize>,
}

pub fn main(args: &[OsString]) -> ExitCode {
    match args {
        [dir] => match launch(dir) {
            Ok(()) => ExitCode::SUCCESS,
            Err(e) => {
                eprintln!("{e:#}");
                ExitCode::FAILURE
            }
        },
        _ => {
            eprintln!("usage: {} DIR", super::LAUNCH);
            ExitCode::FAILURE
        }
    }
}

fn launch(dir: &OsString) -> Result<()> {
    let paths = Paths::at(dir);
    let channel = connect::listen(&paths)?;
    let launch: Launch = serde_json::from_slice(&fs_err::read(paths.launch_file())?)?;
    let disk = disk::open(&paths)?;
    launch.cgroup.enter()?;
    // A session of its own: Ctrl-C in the user's terminal is not for the machine.
    setsid().context("start a session")?;
    unshare(
        CloneFlags::CLONE_NEWNS
            | CloneFlags::CLONE_NEWUTS
            | CloneFlags::CLONE_NEWIPC
            | CloneFlags::CLONE_NEWNET
            | CloneFlags::CLONE_NEWCGROUP
            | CloneFlags::CLONE_NEWPID,
    )
    .context("make namespaces")?;
    launch.cgroup.settle()?;

    let (mut go_read, mut go_write) = std::io::pipe().context("make a pipe")?;
    let (mut error_read, mut error_write) = std::io::pipe().context("make a pipe")?;
    // SAFETY: this process has one thread, so the child may do what it likes.
    match unsafe { fork() }.context("fork init")? {
        ForkResult::Child => {
            drop((go_write, error_read));
            let mut go = [0];
            if go_read.read_exact(&mut go).is_err() {
                std::process::exit(1);
            }
            let failure = match become_init(&launch, &paths, disk, channel) {
                Err(e) => e,
                Ok(never) => match never {},
            };
            let _ = write!(error_write, "{failure:#}");
            std::process::exit(1);
        }
        ForkResult::Parent { child } => {
            drop((go_read, error_write));
            let pid = u32::try_from(child.as_raw()).context("pid of init")?;
            paths.record_init(&process::identify(pid)?)?;
            go_write.write_all(b"!").context("release init")?;
            println!("{pid}");
            let mut error = String::new();
            error_read.read_to_string(&mut error).context("wait for init")?;
            if !error.is_empty() {
                bail!("{error}");
            }
            Ok(())
        }
    }
}

pub enum Never {}

fn become_init(launch: &Launch, paths: &Paths, disk: Option<Disk>, channel: OwnedFd) -> Result<Never> {
    sethostname(&launch.machine).context("set the host name")?;
    run_agent(launch, paths, disk, Some(channel))
}

/// In a mount namespace of its own.
pub fn run_agent(
    launch: &Launch,
    paths: &Paths,
    disk: Option<Disk>,
    channel: Option<OwnedFd>,
) -> Result<Never> {
    mounts::enter_root(launch, paths, disk)?;
    cgroup::settle_v1(&launch.cgroup.version)?;
    let agent = CString::new(model::node_spec::AGENT_PATH)?;
    let argv = [agent.clone(), c"agent".to_owned(), c"init".to_owned()];
    let environment = [
        c"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned(),
        c"HOME=/root".to_owned(),
        c"container=manykube".to_owned(),
    ];
    // Whatever the command had open is not the machine's; its output goes to the launch log.
    let null = fs_err::File::open("/dev/null")?;
    nix::unistd::dup2_stdin(&null).context("detach stdin")?;
    let log = std::path::Path::new(model::node_spec::LOG_DIR).join("agent.log");
    fs_err::create_dir_all(model::node_spec::LOG_DIR)?;
    // Of this boot only: its last line is why a machine ended.
    base::atomic::remove(&log)?;
    let log = fs_err::OpenOptions::new().create(true).append(true).open(log)?;
    nix::unistd::dup2_stdout(&log).context("detach stdout")?;
    nix::unistd::dup2_stderr(&log).context("detach stderr")?;
    channel.map_or(Ok(()), connect::hand_over)?;
    match execve(&agent, &argv, &environment) {
        Ok(never) => match never {},
        Err(e) => Err(anyhow!(e))
            .with_context(|| format!("exec {}", std::ffi::OsStr::from_bytes(agent.as_bytes()).display())),
    }
}
