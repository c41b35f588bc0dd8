//! A machine's cgroup subtree, on hosts with cgroup v1, v2 or both mounted.
//!
//! v1 has one tree per controller, v2 one for all; where both are mounted (hybrid) the controllers
//! belong to v1 and the machine gets v1, which is also what the kubelet in it will find.
//!
//! A machine's processes live in a leaf (see `leaf`), beside which its kubelet makes its own groups:
//!
//! ```text
//! /sys/fs/cgroup/manykube/            no unit of systemd's, which therefore lets it be
//!                  <machine>-<tag>/   the limits; the root of the machine's cgroup namespace
//!                     init.scope/     agent, containerd, kubelet, commands from outside
//!                     kubepods/       the kubelet's
//! ```

pub mod affinity;
mod cpuset;
mod devices;
mod freezer;
mod leaf;
mod limits;
mod members;
mod mountinfo;
mod realtime;
mod removal;
mod running;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use leaf::LEAF;
use serde::{Deserialize, Serialize};

pub use leaf::settle_v1;
pub use limits::Limits;
pub use running::running;

const PARENT: &str = "manykube";
/// Those that no kubelet does without.
const NEEDED: [&str; 3] = ["cpu", "memory", "pids"];

/// A mounted hierarchy of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hierarchy {
    pub mount: PathBuf,
    /// Options that mount it again: `memory`, `cpu,cpuacct`, `none,name=systemd`; empty for v2.
    pub options: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Version {
    V1(Vec<Hierarchy>),
    V2(Hierarchy),
}

impl Version {
    pub fn of_host() -> Result<Version> {
        let text = fs_err::read_to_string("/proc/self/mountinfo")?;
        mountinfo::parse(&text).context("no cgroup hierarchy is mounted below /sys/fs/cgroup")
    }

    /// Controllers that nodes need and the host does not offer.
    pub fn missing(&self) -> Result<Vec<&'static str>> {
        let offered = match self {
            Version::V1(all) => all.iter().map(|h| h.options.as_str()).collect::<Vec<_>>().join(","),
            Version::V2(one) => fs_err::read_to_string(one.mount.join("cgroup.controllers"))?,
        };
        Ok(missing(&offered))
    }

    /// In a container the top is a group like any other, and the container's own processes in it
    /// keep it from handing controllers on. Only the host's true top, which has no type, may do both.
    pub fn is_occupied(&self) -> Result<bool> {
        let Version::V2(one) = self else { return Ok(false) };
        let read = |file: &str| fs_err::read_to_string(one.mount.join(file));
        let (handed_on, processes) = (read("cgroup.subtree_control")?, read("cgroup.procs")?);
        let top = !one.mount.join("cgroup.type").exists();
        Ok(!top && !processes.trim().is_empty() && !missing(&handed_on).is_empty())
    }
}

fn missing(offered: &str) -> Vec<&'static str> {
    let offered: Vec<&str> = offered.split([',', ' ', '\n']).collect();
    NEEDED.into_iter().filter(|needed| !offered.contains(needed)).collect()
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cgroup {
    pub version: Version,
    /// Path of the group below each mount.
    pub path: PathBuf,
}

/// The group of a machine below each mount. Its directory is part of the name, so that two homes may
/// have machines of the same name.
pub fn path(machine: &str, dir: &Path) -> PathBuf {
    let tag = model::names::tagged("", &dir.to_string_lossy());
    Path::new(PARENT).join(format!("{machine}-{tag}"))
}

impl Cgroup {
    pub fn of(machine: &str, dir: &Path) -> Result<Cgroup> {
        Ok(Cgroup { version: Version::of_host()?, path: path(machine, dir) })
    }

    /// That of a machine which somebody else made, by its first process.
    pub fn of_process(pid: u32) -> Result<Cgroup> {
        let version = Version::of_host()?;
        let text = fs_err::read_to_string(format!("/proc/{pid}/cgroup"))?;
        let path = own_path(&text, matches!(version, Version::V2(_)));
        let path = path.with_context(|| format!("process {pid} is in no cgroup"))?;
        Ok(Cgroup { version, path })
    }

    fn hierarchies(&self) -> &[Hierarchy] {
        match &self.version {
            Version::V1(all) => all,
            Version::V2(one) => std::slice::from_ref(one),
        }
    }

    fn groups(&self) -> impl Iterator<Item = PathBuf> {
        self.hierarchies().iter().map(|hierarchy| hierarchy.mount.join(&self.path))
    }

    pub fn create(&self, limits: &Limits) -> Result<()> {
        for hierarchy in self.hierarchies() {
            let parent = hierarchy.mount.join(PARENT);
            let group = hierarchy.mount.join(&self.path);
            fs_err::create_dir_all(&parent)?;
            devices::forbid(&parent)?;
            if matches!(self.version, Version::V2(_)) {
                delegate(&hierarchy.mount)?;
                delegate(&parent)?;
            } else {
                inherit_cpuset(&hierarchy.mount, &parent)?;
            }
            fs_err::create_dir_all(&group)?;
            inherit_cpuset(&parent, &group)?;
            limits::apply(&group, limits)?;
            realtime::lend(&parent, &group);
            if matches!(self.version, Version::V2(_)) {
                fs_err::create_dir_all(group.join(LEAF))?;
            }
        }
        Ok(())
    }

    /// Of a machine that runs.
    pub fn resize(&self, limits: &Limits) -> Result<()> {
        self.groups().try_for_each(|group| limits::apply(&group, limits))?;
        self.pin_all(limits.processors());
        Ok(())
    }

    /// Moves this process into the group itself, to make the cgroup namespace there whose root it is.
    pub fn enter(&self) -> Result<()> {
        self.groups().try_for_each(|group| enter_group(&group))
    }

    /// From there to the leaf, which frees a v2 group to hand on its controllers.
    pub fn settle(&self) -> Result<()> {
        let Version::V2(one) = &self.version else { return Ok(()) };
        let group = one.mount.join(&self.path);
        enter_group(&group.join(LEAF))?;
        delegate(&group)
    }

    /// Lets go on whatever was frozen below the group: what is frozen neither ends nor can be killed.
    pub fn thaw(&self) {
        self.groups().for_each(|group| freezer::thaw(&group));
    }

    /// Removes the group and everything below it. The machine must have ended.
    pub fn remove(&self) -> Result<()> {
        for hierarchy in self.hierarchies() {
            removal::remove(&hierarchy.mount.join(&self.path))?;
            // The last machine takes the parent with it; others keep it, which is not an error.
            let _ = std::fs::remove_dir(hierarchy.mount.join(PARENT));
        }
        Ok(())
    }
}

/// Of /proc/PID/cgroup, without the leaf: with v1 that of the controller that every machine is limited by.
fn own_path(text: &str, v2: bool) -> Option<PathBuf> {
    let mut lines = text.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
    let (_, path) =
        lines.find(|(of, _)| if v2 { of.is_empty() } else { of.split(',').any(|c| c == "memory") })?;
    let path = Path::new(path.strip_prefix('/')?);
    Some(if path.ends_with(LEAF) { path.parent()?.to_owned() } else { path.to_owned() })
}

fn enter_group(group: &Path) -> Result<()> {
    fs_err::write(group.join("cgroup.procs"), "0").context("enter the machine's cgroup")
}

/// Hands all controllers of a v2 group on to its children.
fn delegate(group: &Path) -> Result<()> {
    let controllers = fs_err::read_to_string(group.join("cgroup.controllers"))?;
    for controller in controllers.split_ascii_whitespace() {
        // One by one: a refusal of one that no node needs must not cost the others.
        match write(&group.join("cgroup.subtree_control"), &format!("+{controller}")) {
            Err(e) if NEEDED.contains(&controller) => {
                let why = "hand on a controller of";
                return Err(e).with_context(|| format!("{why} {}", group.display()));
            }
            _ => {}
        }
    }
    Ok(())
}

/// A new v1 cpuset is empty, and no process may enter it until it is filled.
fn inherit_cpuset(parent: &Path, group: &Path) -> Result<()> {
    for file in ["cpuset.cpus", "cpuset.mems"] {
        let path = group.join(file);
        let v1 = path.exists() && !group.join("cgroup.controllers").exists();
        if v1 && fs_err::read_to_string(&path)?.trim().is_empty() {
            write(&path, fs_err::read_to_string(parent.join(file))?.trim())?;
        }
    }
    Ok(())
}

fn write(path: &Path, value: &str) -> Result<()> {
    fs_err::write(path, value).with_context(|| format!("set {value:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers_are_counted_in_both_versions_lists() {
        assert_eq!(missing("cpuset cpu io memory hugetlb pids rdma misc\n"), [""; 0]);
        assert_eq!(missing("cpuset cpu io pids\n"), ["memory"]);
        assert_eq!(missing("cpu,cpuacct,memory,none,name=systemd"), ["pids"]);
    }

    #[test]
    fn a_process_tells_its_group() {
        let v1 = "12:cpu,cpuacct:/a\n5:memory:/docker/0af\n0::/x\n";
        assert_eq!(own_path(v1, false), Some("docker/0af".into()));
        let v2 = "0::/system.slice/docker-0af.scope/init.scope\n";
        assert_eq!(own_path(v2, true), Some("system.slice/docker-0af.scope".into()));
    }
}
