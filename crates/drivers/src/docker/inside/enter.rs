//! `engine-enter ORDERS`: the first process of the container leaves it for where the engine itself is, and
//! becomes the command.

use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use nix::sched::{CloneFlags, setns};
use serde::{Deserialize, Serialize};

use super::luggage;
use super::seek::Sought;
use super::whereabouts::Here;
use crate::native::cgroup::{Cgroup, Version};
use crate::user_namespace;

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
    /// None: only tell where this is.
    pub argv: Vec<String>,
    pub dir: PathBuf,
    /// Or rather where the files are that came along.
    pub luggage: bool,
    pub landmark: Option<Landmark>,
    /// The engine whose address is not known there.
    pub engine: Option<Sought>,
}

/// The command was not run.
pub const NOT_RUN: u8 = 125;

pub fn main(orders: Option<&std::ffi::OsString>) -> ExitCode {
    match orders.context("no orders").and_then(|text| enter(text.as_bytes())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::from(NOT_RUN)
        }
    }
}

fn enter(orders: &[u8]) -> Result<()> {
    let orders: Orders = serde_json::from_slice(orders).context("read the orders")?;
    // Kept open: the container's own files have no name where we go.
    let luggage = orders.luggage.then(|| fs_err::File::open(luggage::PLACE)).transpose()?;
    // Who started us resolves the paths of all mounts that containers of this engine ask for.
    let parent = rustix::process::getppid().context("the container has a pid namespace of its own")?;
    let engine = Path::new("/proc").join(parent.as_raw_nonzero().to_string());
    let files = fs_err::File::open(engine.join("ns/mnt"))?;
    setns(&files, CloneFlags::CLONE_NEWNS).context("see the files that the engine sees")?;
    // In the network that the engine itself is in.
    let address = orders.engine.as_ref().map(Sought::find);
    if let Some(network) = bridges(&engine)? {
        setns(&network, CloneFlags::CLONE_NEWNET)
            .context("see the network that the engine has its bridges in")?;
    }
    let [name, args @ ..] = orders.argv.as_slice() else {
        let here = Here::look(orders.landmark.is_some_and(|l| l.is_here()))?;
        println!("{}", serde_json::to_string(&here).context("say where this is")?);
        return Ok(());
    };
    if let Some(mark) = orders.landmark.filter(|mark| !mark.is_here()) {
        bail!("the engine does not see the files of this host: it has no {}", mark.path.display());
    }
    // What the command leaves running (a registry's door) is not to end with the container.
    leave(parent.as_raw_nonzero().get().unsigned_abs()).context("leave the container's cgroup")?;
    match luggage {
        Some(place) => rustix::process::fchdir(place).context("go to the files that came along")?,
        None => std::env::set_current_dir(&orders.dir)
            .with_context(|| format!("enter {}", orders.dir.display()))?,
    }
    let mut command = Command::new("/proc/self/exe");
    command.arg0(name).args(args);
    if let Some(address) = address {
        command.env(crate::docker::ENGINE, address?);
    }
    Err(command.exec()).context("run the command")
}

/// To the top. A user may not go there, but to where the engine is; and so may whoever finds that the top is that of a
/// container which the engine itself is in: it hands controllers on, and then nobody may be in it.
fn leave(engine: u32) -> Result<()> {
    let to_engine = || Cgroup::of_process(engine)?.enter();
    if user_namespace::is_own() {
        return to_engine();
    }
    let top = Cgroup { version: Version::of_host()?, path: "".into() };
    match (top.enter(), &top.version) {
        (Err(error), Version::V2(_)) => to_engine().map_err(|_| error),
        (done, _) => done,
    }
}

/// A rootless engine may keep them apart from itself (rootlesskit's `--detach-netns`): then the host's network is its
/// own as well, and what says so is its environment, which the container's parent has too.
fn bridges(engine: &Path) -> Result<Option<fs_err::File>> {
    if !user_namespace::is_own() {
        return Ok(None);
    }
    let environment = fs_err::read(engine.join("environ"))?;
    let Some(network) = apart(&environment).filter(|path| path.exists()) else { return Ok(None) };
    Ok(Some(fs_err::File::open(network)?))
}

fn apart(environment: &[u8]) -> Option<PathBuf> {
    let state =
        environment.split(|byte| *byte == 0).find_map(|v| v.strip_prefix(b"ROOTLESSKIT_STATE_DIR="))?;
    Some(Path::new(std::ffi::OsStr::from_bytes(state)).join("netns"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_rootlesskit_says_its_network_is() {
        let environment =
            b"PATH=/bin\0ROOTLESSKIT_STATE_DIR=/run/user/1000/dockerd-rootless\0HOME=/home/dev\0";
        assert_eq!(apart(environment), Some("/run/user/1000/dockerd-rootless/netns".into()));
        assert_eq!(apart(b"PATH=/bin\0"), None);
    }
}
