//! The machine's view of the file system, made in its own mount namespace: when the machine ends,
//! all of it is gone.

use std::os::fd::OwnedFd;
use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::{Context, Result, bail};
use model::node_spec::{AGENT_PATH, IMAGES_DIR, RUN_DIR};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use nix::unistd::{chdir, pivot_root};
use rustix::system::uname;

use super::cgroup::Version;
use super::disk::Disk;
use super::launch::Launch;
use super::{binds, confine, sealed};
use crate::machine::Paths;
use crate::user_namespace;

/// Name, major, minor, mode: what a container runtime and a kubelet expect to find.
const DEVICES: [(&str, u64, u64, u32); 9] = [
    ("null", 1, 3, 0o666),
    ("zero", 1, 5, 0o666),
    ("full", 1, 7, 0o666),
    ("random", 1, 8, 0o666),
    ("urandom", 1, 9, 0o666),
    ("kmsg", 1, 11, 0o600),
    ("tty", 5, 0, 0o666),
    ("fuse", 10, 229, 0o666),
    ("net/tun", 10, 200, 0o666),
];

/// `f_type` of an overlay.
const OVERLAY: rustix::fs::FsWord = 0x794c_7630;

pub fn enter_root(launch: &Launch, paths: &Paths, disk: Option<Disk>) -> Result<()> {
    // Nothing we mount may show up on the host, and nothing of the host is needed later.
    change(Path::new("/"), MsFlags::MS_REC | MsFlags::MS_PRIVATE)?;
    let root = paths.merged();
    let (images, agent) = (images(launch, &root)?, agent(launch, &root)?);
    // Those of this kernel only: they may be a mount of their own, which an overlay of the directory above does not show.
    let modules = Path::new("/lib/modules").join(uname().release().to_string_lossy().as_ref());
    let taken_modules = sealed::take(&modules, Path::new(""), &root);
    overlay(launch, paths, &root)?;
    bind(&paths.var(), &root.join("var"))?;

    special("proc", &root.join("proc"), "proc", MsFlags::empty(), "")?;
    special("sysfs", &root.join("sys"), "sysfs", MsFlags::empty(), "")?;
    special("tmpfs", &root.join("run"), "tmpfs", MsFlags::MS_NOSUID, "mode=755")?;
    special("tmpfs", &root.join("tmp"), "tmpfs", MsFlags::MS_NOSUID, "mode=1777")?;
    let run = root.join(RUN_DIR.trim_start_matches('/'));
    fs_err::create_dir_all(&run)?;
    devices(&root.join("dev"))?;
    cgroups(launch, &root.join("sys/fs/cgroup"))?;
    optional(&root);
    confine::confine(&root)?;

    // Taken while the host's paths mean something, put where the node's do.
    let taken: Vec<_> = launch.binds.iter().map(binds::take).collect::<Result<_>>()?;
    chdir(&root).context("enter the new root")?;
    pivot_root(".", ".").context("make it the root")?;
    umount2(".", MntFlags::MNT_DETACH).context("leave the old root")?;
    chdir("/").context("enter /")?;
    disk.map_or(Ok(()), Disk::put).context("put the node's own disk in place")?;
    for (tree, place) in [(&images, IMAGES_DIR), (&agent, AGENT_PATH)] {
        binds::place(tree, Path::new(place))?;
    }
    if let Ok(tree) = taken_modules {
        // Nice to have: not every host has them.
        let _ = binds::place(&tree, &modules);
    }
    taken.into_iter().zip(&launch.binds).try_for_each(|(tree, wanted)| binds::put(&tree, wanted))?;
    // Pods may ask for mount propagation, which needs a shared root.
    change(Path::new("/"), MsFlags::MS_REC | MsFlags::MS_SHARED)
}

fn overlay(launch: &Launch, paths: &Paths, root: &Path) -> Result<()> {
    let options = format!(
        "lowerdir={},upperdir={},workdir={}{}",
        launch.image_rootfs.display(),
        paths.upper().display(),
        paths.work().display(),
        notes()
    );
    special("overlay", root, "overlay", MsFlags::empty(), &options)
}

/// What an overlay notes of its files is for the host's root to write, unless it is the user's own notes.
pub(super) fn notes() -> &'static str {
    if user_namespace::is_own() { ",userxattr" } else { "" }
}

/// The container images of the node image.
fn images(launch: &Launch, empty: &Path) -> Result<OwnedFd> {
    let kind =
        rustix::fs::statfs(&launch.images).with_context(|| format!("look at {}", launch.images.display()))?;
    if kind.f_type == OVERLAY {
        // Two levels of overlays is all that the kernel does, and containers are one.
        bail!(
            "the node image lies on an overlay file system ({}), on which containers cannot be: keep MANYKUBE_CACHE on a disk",
            launch.images.display()
        );
    }
    sealed::take(&launch.images, Path::new(""), empty)
}

/// The program that all nodes share.
fn agent(launch: &Launch, empty: &Path) -> Result<OwnedFd> {
    let parts = launch.agent.parent().zip(launch.agent.file_name());
    let (dir, name) = parts.context("the agent has no directory")?;
    sealed::take(dir, Path::new(name), empty)
}

fn devices(dev: &Path) -> Result<()> {
    special("tmpfs", dev, "tmpfs", MsFlags::MS_NOSUID, "mode=755")?;
    for dir in ["pts", "shm", "mqueue", "net"] {
        fs_err::create_dir(dev.join(dir))?;
    }
    nix::sys::stat::umask(Mode::empty());
    for (name, major, minor, mode) in DEVICES {
        let at = dev.join(name);
        if user_namespace::is_own() {
            lend(name, &at)?;
            continue;
        }
        mknod(&at, SFlag::S_IFCHR, Mode::from_bits_truncate(mode), makedev(major, minor))
            .with_context(|| format!("make device {name}"))?;
    }
    nix::sys::stat::umask(Mode::from_bits_truncate(0o022));
    special(
        "devpts",
        &dev.join("pts"),
        "devpts",
        MsFlags::MS_NOSUID,
        "newinstance,ptmxmode=0666,mode=620,gid=5",
    )?;
    special("shm", &dev.join("shm"), "tmpfs", MsFlags::MS_NOSUID, "mode=1777")?;
    special("mqueue", &dev.join("mqueue"), "mqueue", MsFlags::MS_NOSUID, "")?;
    for (link, to) in [
        ("ptmx", "pts/ptmx"),
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
        ("console", "null"),
    ] {
        symlink(to, dev.join(link)).with_context(|| format!("link {link}"))?;
    }
    Ok(())
}

/// A device that the engine has given us, where nobody may make one. What it has not is not missed: a user's engine
/// has none that only the host's root may use.
fn lend(name: &str, at: &Path) -> Result<()> {
    let own = Path::new("/dev").join(name);
    if !own.exists() {
        return Ok(());
    }
    fs_err::write(at, "")?;
    bind(&own, at)
}

/// The host's hierarchies again; the cgroup namespace shows the machine's own group as their root.
fn cgroups(launch: &Launch, at: &Path) -> Result<()> {
    let Version::V1(hierarchies) = &launch.cgroup.version else {
        return special("cgroup2", at, "cgroup2", MsFlags::MS_NOSUID, "nsdelegate");
    };
    special("tmpfs", at, "tmpfs", MsFlags::MS_NOSUID, "mode=755")?;
    for hierarchy in hierarchies {
        let name = hierarchy.mount.file_name().context("a cgroup mount without a name")?;
        let point = at.join(name);
        fs_err::create_dir(&point)?;
        special("cgroup", &point, "cgroup", MsFlags::MS_NOSUID, &hierarchy.options)?;
        // `cpu` and `cpuacct` must be found also where the host mounts them as one.
        if hierarchy.options.contains(',') && !hierarchy.options.contains('=') {
            for controller in hierarchy.options.split(',') {
                let _ = symlink(name, at.join(controller));
            }
        }
    }
    Ok(())
}

/// Nice to have: not every kernel has them, and nothing depends on them.
fn optional(root: &Path) {
    let _ = special("bpf", &root.join("sys/fs/bpf"), "bpf", MsFlags::empty(), "");
}

pub(super) fn special(source: &str, at: &Path, kind: &str, flags: MsFlags, options: &str) -> Result<()> {
    mount(Some(source), at, Some(kind), flags, Some(options))
        .with_context(|| format!("mount {kind} on {} ({options})", at.display()))
}

fn bind(from: &Path, at: &Path) -> Result<()> {
    mount(Some(from), at, None::<&str>, MsFlags::MS_BIND | MsFlags::MS_REC, None::<&str>)
        .with_context(|| format!("bind {} to {}", from.display(), at.display()))
}

fn change(at: &Path, flags: MsFlags) -> Result<()> {
    mount(None::<&str>, at, None::<&str>, flags, None::<&str>)
        .with_context(|| format!("change the mount of {}", at.display()))
}
