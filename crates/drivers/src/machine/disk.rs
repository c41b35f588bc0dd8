//! A machine's disk of its own: a file with a file system in it, of which only as much is on the host's disk as
//! was ever used. Without one, a machine shares the host's disk.

use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use fs_err::os::unix::fs::OpenOptionsExt as _;
use model::{Fault, Home, Reason};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

use super::Paths;
use crate::native::borrowed::in_image;

/// In the machine's directory.
pub const DISK: &str = "disk.img";
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

/// The disk is to be full, also after a boot of the machine, until `is_free` or the end of the host.
pub fn is_full(home: &Home, machine: &str) -> Result<()> {
    let paths = Paths::new(home, machine);
    if !paths.has_disk() {
        return Err(shares_the_disk(machine).into());
    }
    Ok(base::atomic::replace(&paths.full_mark(), crate::boot_id().as_bytes(), 0o600)?)
}

/// Of a machine that is off the next boot gives the space back.
pub fn is_free(home: &Home, machine: &str) -> Result<()> {
    Ok(base::atomic::remove(&Paths::new(home, machine).full_mark())?)
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
