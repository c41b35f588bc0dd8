//! A machine's cgroup subtree, on hosts with cgroup v1, v2 or both mounted.
//!
//! v1 has one tree per controller, v2 one for all; where both are mounted (hybrid) the controllers
//! belong to v1 and the machine gets v1, which is also what the kubelet in it will find.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

const PARENT: &str = "manykube";
const CPU_PERIOD_US: u64 = 100_000;
/// How long the kernel may take to bury the dead.
const BURIAL: Duration = Duration::from_secs(2);

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

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cgroup {
    pub version: Version,
    /// Path of the group below each mount.
    pub path: PathBuf,
}

pub struct Limits {
    pub cpus: u32,
    pub host_cpus: u32,
    pub memory_mib: u32,
}

/// The group of a machine below each mount. Its directory is part of the name, so that two homes may
/// have machines of the same name.
pub fn path(machine: &str, dir: &Path) -> PathBuf {
    let tag = model::names::tagged("", &dir.to_string_lossy());
    Path::new(PARENT).join(format!("{machine}-{tag}"))
}

impl Cgroup {
    pub fn of(machine: &str, dir: &Path) -> Result<Cgroup> {
        let mountinfo = std::fs::read_to_string("/proc/self/mountinfo").context("read mountinfo")?;
        let Some(version) = parse_mountinfo(&mountinfo) else {
            bail!("no cgroup hierarchy is mounted below /sys/fs/cgroup")
        };
        Ok(Cgroup { version, path: path(machine, dir) })
    }

    fn hierarchies(&self) -> &[Hierarchy] {
        match &self.version {
            Version::V1(all) => all,
            Version::V2(one) => std::slice::from_ref(one),
        }
    }

    pub fn create(&self, limits: &Limits) -> Result<()> {
        for hierarchy in self.hierarchies() {
            let parent = hierarchy.mount.join(PARENT);
            let group = hierarchy.mount.join(&self.path);
            fs_err::create_dir_all(&parent)?;
            if matches!(self.version, Version::V2(_)) {
                delegate(&hierarchy.mount)?;
                delegate(&parent)?;
            } else {
                inherit_cpuset(&hierarchy.mount, &parent)?;
            }
            fs_err::create_dir_all(&group)?;
            inherit_cpuset(&parent, &group)?;
            limit(&group, limits)?;
        }
        Ok(())
    }

    /// Moves this process into the group.
    pub fn enter(&self) -> Result<()> {
        join(&mut self.doors()?)
    }

    /// Files that let whoever writes to them in: opened where the host's paths mean something, used
    /// perhaps elsewhere.
    pub fn doors(&self) -> Result<Vec<File>> {
        let door = |hierarchy: &Hierarchy| {
            let group = hierarchy.mount.join(&self.path);
            let init = group.join("init.scope");
            // v2 forbids processes in a group that has children with controllers.
            let target = if init.is_dir() { init } else { group };
            Ok(fs_err::OpenOptions::new().write(true).open(target.join("cgroup.procs"))?.into_parts().0)
        };
        self.hierarchies().iter().map(door).collect()
    }

    /// Removes the group and everything below it. All its processes must have ended.
    pub fn remove(&self) -> Result<()> {
        for hierarchy in self.hierarchies() {
            remove_tree(&hierarchy.mount.join(&self.path))?;
            // The last machine takes the parent with it; others keep it, which is not an error.
            let _ = std::fs::remove_dir(hierarchy.mount.join(PARENT));
        }
        Ok(())
    }
}

/// The groups of all machines on this host that have a process, of whatever home.
pub fn running() -> Result<Vec<PathBuf>> {
    let mountinfo = std::fs::read_to_string("/proc/self/mountinfo").context("read mountinfo")?;
    let mount = match parse_mountinfo(&mountinfo) {
        Some(Version::V1(all)) => all.into_iter().next().map(|h| h.mount),
        Some(Version::V2(one)) => Some(one.mount),
        None => None,
    };
    let Some(parent) = mount.map(|m| m.join(PARENT)) else { return Ok(Vec::new()) };
    let groups = std::fs::read_dir(parent).into_iter().flatten().flatten();
    Ok(groups.filter(|g| is_populated(&g.path())).map(|g| Path::new(PARENT).join(g.file_name())).collect())
}

fn is_populated(group: &Path) -> bool {
    if std::fs::read(group.join("cgroup.procs")).is_ok_and(|procs| !procs.is_empty()) {
        return true;
    }
    let children = std::fs::read_dir(group).into_iter().flatten().flatten();
    children.into_iter().any(|c| c.file_type().is_ok_and(|t| t.is_dir()) && is_populated(&c.path()))
}

/// Lets this process in.
pub fn join(doors: &mut [File]) -> Result<()> {
    doors.iter_mut().try_for_each(|door| door.write_all(b"0")).context("enter the machine's cgroup")
}

fn parse_mountinfo(text: &str) -> Option<Version> {
    let mut v1 = Vec::new();
    let mut v2 = None;
    for line in text.lines() {
        let (left, right) = line.split_once(" - ")?;
        let mount = PathBuf::from(left.split(' ').nth(4)?);
        let mut right = right.split(' ');
        let (kind, _, options) = (right.next()?, right.next()?, right.next().unwrap_or_default());
        match kind {
            "cgroup" if mount.starts_with("/sys/fs/cgroup") => {
                v1.push(Hierarchy { mount, options: v1_options(options) });
            }
            "cgroup2" if mount == Path::new("/sys/fs/cgroup") => {
                v2 = Some(Hierarchy { mount, options: String::new() });
            }
            _ => {}
        }
    }
    if v1.iter().any(|h| h.options.split(',').any(|o| o == "memory")) {
        return Some(Version::V1(v1));
    }
    v2.map(Version::V2)
}

/// The super options that name controllers: without `rw`, `xattr` and the like.
fn v1_options(options: &str) -> String {
    let skip = ["rw", "ro", "xattr", "noprefix", "clone_children", "cpuset_v2_mode"];
    let keep: Vec<&str> =
        options.split(',').filter(|o| !skip.contains(o) && !o.starts_with("release_agent=")).collect();
    let named_only = keep.iter().all(|o| o.starts_with("name="));
    if named_only { format!("none,{}", keep.join(",")) } else { keep.join(",") }
}

/// Hands all controllers of a v2 group on to its children.
fn delegate(group: &Path) -> Result<()> {
    let controllers = fs_err::read_to_string(group.join("cgroup.controllers"))?;
    for controller in controllers.split_ascii_whitespace() {
        // One by one: a refusal of one that no node needs must not cost the others.
        let given = write(&group.join("cgroup.subtree_control"), &format!("+{controller}"));
        if ["cpu", "memory", "pids"].contains(&controller) {
            given?;
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

fn limit(group: &Path, limits: &Limits) -> Result<()> {
    let memory = u64::from(limits.memory_mib) << 20;
    let quota = u64::from(limits.cpus) * CPU_PERIOD_US;
    let capped = limits.cpus < limits.host_cpus;
    let set = |file: &str, value: String| {
        let path = group.join(file);
        if path.exists() { write(&path, &value) } else { Ok(()) }
    };
    if limits.memory_mib > 0 {
        set("memory.limit_in_bytes", memory.to_string())?;
        set("memory.max", memory.to_string())?;
    }
    // A quota as large as the host only costs throttling.
    let v1_quota = if capped { quota.to_string() } else { "-1".into() };
    set("cpu.cfs_quota_us", v1_quota)?;
    let v2_quota = if capped { format!("{quota} {CPU_PERIOD_US}") } else { "max".into() };
    set("cpu.max", v2_quota)
}

fn write(path: &Path, value: &str) -> Result<()> {
    fs_err::write(path, value).with_context(|| format!("set {value:?}"))
}

fn remove_tree(group: &Path) -> Result<()> {
    let entries = match std::fs::read_dir(group) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(e).with_context(|| format!("list {}", group.display())),
    };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|t| t.is_dir()) {
            remove_tree(&entry.path())?;
        }
    }
    // Who has just ended may still be counted for a moment.
    let began = Instant::now();
    loop {
        match std::fs::remove_dir(group) {
            Err(e) if e.kind() == std::io::ErrorKind::ResourceBusy && began.elapsed() < BURIAL => {
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                return Err(e).with_context(|| format!("remove {}", group.display()));
            }
            _ => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hybrid_hosts_give_v1() {
        let text = "24 20 0:21 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n\
            25 24 0:22 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid - cgroup cgroup rw,cpu,cpuacct\n\
            26 24 0:23 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
            27 24 0:24 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n\
            28 24 0:25 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw";
        let Some(Version::V1(all)) = parse_mountinfo(text) else { panic!("not v1") };
        let options: Vec<&str> = all.iter().map(|h| h.options.as_str()).collect();
        assert_eq!(options, ["cpu,cpuacct", "memory", "none,name=systemd"]);
    }

    #[test]
    fn unified_hosts_give_v2() {
        let text = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate";
        assert!(matches!(parse_mountinfo(text), Some(Version::V2(_))));
        assert_eq!(parse_mountinfo("30 23 0:26 / /proc rw - proc proc rw"), None);
    }
}
