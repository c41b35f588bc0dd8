//! A machine's disk of its own: a file with a file system in it, of which only as much is on the host's disk as
//! was ever used. Without one, a machine shares the host's disk.

use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use fs_err::os::unix::fs::OpenOptionsExt as _;
use model::{Fault, Home, Reason};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::stat::major;
use rustix::fs::{FallocateFlags, fallocate, fstatvfs};
use rustix::io::Errno;

use super::{Paths, files};
use crate::native::borrowed::in_image;
use crate::native::loop_device::MAJOR;

/// In the machine's directory.
pub const DISK: &str = "disk.img";
/// The kubelet's, which is on the disk.
const DIRECTORY: &str = "/var/lib/kubelet";
/// What fills a disk on purpose, in that directory.
pub const FILL: &str = ".fault-fill-disk";
const MKFS: &str = "/usr/sbin/mke2fs";
/// Root has no blocks of its own, and nothing is written that can be zero as well.
const OPTIONS: [&str; 7] =
    ["-qF", "-t", "ext4", "-m", "0", "-E", "lazy_itable_init=1,lazy_journal_init=1,nodiscard"];

pub fn make(paths: &Paths, mib: u32, image_rootfs: &Path) -> Result<()> {
    let file = fs_err::OpenOptions::new().write(true).create_new(true).mode(0o600).open(paths.disk())?;
    file.set_len(u64::from(mib) << 20)?;
    if !image_rootfs.join(MKFS.trim_start_matches('/')).exists() {
        bail!("the node image {} has no {MKFS}, which makes disks: build it anew", image_rootfs.display());
    }
    // The image's program finds the machine's directory in the image's root, and nobody else does.
    let dir = std::ffi::CString::new(paths.dir().as_os_str().as_bytes())?;
    let point = std::ffi::CString::new(image_rootfs.join("mnt").as_os_str().as_bytes())?;
    let name = paths.disk().file_name().unwrap_or_default().to_owned();
    let mut command = Command::new(MKFS);
    command.args(OPTIONS).arg(Path::new("/mnt").join(name));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    // SAFETY: unshare and mount are async-signal-safe; nothing is allocated.
    unsafe {
        command.pre_exec(move || {
            unshare(CloneFlags::CLONE_NEWNS)?;
            let none = None::<&std::ffi::CStr>;
            mount(none, c"/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)?;
            mount(Some(dir.as_c_str()), point.as_c_str(), none, MsFlags::MS_BIND, none)?;
            Ok(())
        });
    }
    in_image(&mut command, image_rootfs)?;
    let output = command.output().with_context(|| format!("run {MKFS} of {}", image_rootfs.display()))?;
    if !output.status.success() {
        bail!("make the disk {}: {}", paths.disk().display(), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

pub fn has_disk(home: &Home, machine: &str) -> bool {
    Paths::new(home, machine).has_disk()
}

/// Leaves the disk of a machine that runs only so many bytes, until `free` or the end of the host; also over a boot of
/// the machine.
pub fn fill(home: &Home, machine: &str, leave: u64) -> Result<()> {
    let paths = Paths::new(home, machine);
    if !paths.has_disk() {
        return Err(shares_the_disk(machine).into());
    }
    // The disk, and nothing that will be covered by it in a moment.
    ensure!(
        own(home, machine, DIRECTORY)?.is_some(),
        "the disk of {machine} is not in its place yet: try again"
    );
    fs_err::write(paths.full_mark(), crate::boot_id())?;
    let file = files::create(home, machine, &inside(), 0o600)?;
    let mut length = 0;
    let mut most = u64::MAX;
    loop {
        let fs = fstatvfs(&file).context("look at the disk")?;
        let block = fs.f_frsize.max(1);
        let more = (fs.f_bavail * block).saturating_sub(leave).min(most) / block * block;
        if more == 0 {
            return Ok(());
        }
        match fallocate(&file, FallocateFlags::empty(), length, more) {
            Ok(()) => length += more,
            // What it takes to remember so much is not there as well.
            Err(Errno::NOSPC) => most = more / 2,
            Err(e) => return Err(e).with_context(|| format!("fill the disk of {machine}")),
        }
    }
}

/// Of a machine that is off the next boot takes it away.
pub fn free(home: &Home, machine: &str) -> Result<()> {
    let paths = Paths::new(home, machine);
    if let Err(e) = fs_err::remove_file(paths.full_mark())
        && e.kind() != ErrorKind::NotFound
    {
        return Err(e.into());
    }
    match paths.running() {
        Some(_) => files::remove(home, machine, &inside()),
        None => Ok(()),
    }
}

fn inside() -> String {
    format!("{DIRECTORY}/{FILL}")
}

/// A directory of the disk in a machine that runs; `None` where another file system is seen there, because the machine
/// begins or ends.
fn own(home: &Home, machine: &str, directory: &str) -> Result<Option<File>> {
    let Some(opened) = files::open(home, machine, directory)? else { return Ok(None) };
    let device = opened.metadata()?.dev();
    Ok((major(device) == MAJOR).then_some(opened))
}

/// Has the directory `below` one of the disk's anything in it? `None` where that cannot be seen.
pub fn has_entries(home: &Home, machine: &str, directory: &str, below: &str) -> Option<bool> {
    let opened = own(home, machine, directory).ok()??;
    // By what is open: the machine may end between two looks.
    match std::fs::read_dir(format!("/proc/self/fd/{}/{below}", opened.as_raw_fd())) {
        Ok(mut entries) => Some(entries.next().is_some()),
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Some(false),
        Err(_) => None,
    }
}

fn shares_the_disk(machine: &str) -> Fault {
    Fault::new(
        Reason::Unimplemented,
        format!(
            "The disk of {machine} cannot be filled: it is the host's, and all other nodes and the host would be \
             without space too."
        ),
    )
    .advice("Give nodes disks of their own when they are made: --disk-size=4g of start and of node add")
}
