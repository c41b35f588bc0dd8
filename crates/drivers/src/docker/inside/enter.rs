//! `engine-enter ERRAND`: the first process of the container leaves it for where the engine itself is, and
//! becomes the command.

use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use nix::sched::{CloneFlags, setns};
use serde::{Deserialize, Serialize};

use crate::native::cgroup::{Cgroup, Version};

/// What the engine's host must have at the same place, or it is another host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Landmark {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl Landmark {
    pub fn of(path: &Path) -> Result<Landmark> {
        let found = fs_err::metadata(path)?;
        Ok(Landmark { path: path.to_owned(), device: found.dev(), inode: found.ino() })
    }

    fn is_here(&self) -> bool {
        Landmark::of(&self.path).is_ok_and(|here| here == *self)
    }
}

/// What the container is told, as its one argument.
#[derive(Debug, Serialize, Deserialize)]
pub struct Orders {
    pub argv: Vec<String>,
    pub dir: PathBuf,
    pub landmark: Landmark,
}

/// The command was not run.
pub const NOT_RUN: u8 = 125;

pub fn main(orders: Option<&std::ffi::OsString>) -> ExitCode {
    let error = match orders.context("no orders").and_then(|text| enter(text.as_bytes())) {
        Ok(never) => match never {},
        Err(error) => error,
    };
    eprintln!("{error:#}");
    ExitCode::from(NOT_RUN)
}

fn enter(orders: &[u8]) -> Result<std::convert::Infallible> {
    let orders: Orders = serde_json::from_slice(orders).context("read the orders")?;
    let [name, args @ ..] = orders.argv.as_slice() else { bail!("no command") };
    // Who started us resolves the paths of all mounts that containers of this engine ask for.
    let parent = rustix::process::getppid().context("the container has a pid namespace of its own")?;
    let parent = format!("/proc/{}/ns/mnt", parent.as_raw_nonzero());
    let files = fs_err::File::open(parent)?;
    setns(&files, CloneFlags::CLONE_NEWNS).context("see the files that the engine sees")?;
    // What the command leaves running (a registry's door) is not to end with the container.
    Cgroup { version: Version::of_host()?, path: "".into() }
        .enter()
        .context("leave the container's cgroup")?;
    if !orders.landmark.is_here() {
        bail!("the engine does not see the files of this host: it has no {}", orders.landmark.path.display());
    }
    std::env::set_current_dir(&orders.dir).with_context(|| format!("enter {}", orders.dir.display()))?;
    Err(Command::new("/proc/self/exe").arg0(name).args(args).exec()).context("run the command")
}
