//! A file as a block device, for as long as a file system of it is mounted somewhere.

use std::fs::File;
use std::os::fd::{AsRawFd as _, RawFd};
use std::path::PathBuf;

use anyhow::{Context, Result};
use linux_raw_sys::loop_device::{
    LO_FLAGS_AUTOCLEAR, LOOP_CONFIGURE, LOOP_CTL_GET_FREE, loop_config, loop_info64,
};
use nix::errno::Errno;
use nix::sys::stat::{Mode, SFlag, makedev, mknod};

pub const CONTROL: &str = "/dev/loop-control";
/// The kernel's number for these devices.
pub const MAJOR: u64 = 7;
/// Whoever else looks for a free one at the same time may be quicker.
const TRIES: u32 = 64;

nix::ioctl_none_bad!(get_free, LOOP_CTL_GET_FREE);
nix::ioctl_write_ptr_bad!(configure, LOOP_CONFIGURE, loop_config);

/// Open as long as it is to be kept; a file system that is mounted keeps it as well.
pub struct LoopDevice {
    pub path: PathBuf,
    _device: File,
}

pub fn attach(file: &File) -> Result<LoopDevice> {
    let control = fs_err::OpenOptions::new().read(true).write(true).open(CONTROL)?;
    for _ in 0..TRIES {
        // SAFETY: takes no argument.
        let number = unsafe { get_free(control.as_raw_fd()) }.context("find a loop device that is free")?;
        let path = PathBuf::from(format!("/dev/loop{number}"));
        if !path.exists() {
            // A container's /dev has only those that were there before it.
            let device = makedev(MAJOR, u64::try_from(number)?);
            match mknod(&path, SFlag::S_IFBLK, Mode::from_bits_truncate(0o600), device) {
                // Another machine boots at the same time.
                Ok(()) | Err(Errno::EEXIST) => {}
                Err(e) => return Err(e).with_context(|| format!("make {}", path.display())),
            }
        }
        let device = fs_err::OpenOptions::new().read(true).write(true).open(&path)?.into_file();
        let wanted = config(file.as_raw_fd())?;
        // SAFETY: the structure is what the kernel asks for, and lives as long as the call.
        match unsafe { configure(device.as_raw_fd(), &raw const wanted) } {
            Ok(_) => return Ok(LoopDevice { path, _device: device }),
            Err(Errno::EBUSY) => {}
            Err(e) => return Err(e).with_context(|| format!("give {} its file", path.display())),
        }
    }
    anyhow::bail!("all loop devices are taken as soon as they are free")
}

/// It lets go of the file with the last who uses it, also when nobody is left to tell it to.
fn config(file: RawFd) -> Result<loop_config> {
    let info = loop_info64 {
        lo_device: 0,
        lo_inode: 0,
        lo_rdevice: 0,
        lo_offset: 0,
        lo_sizelimit: 0,
        lo_number: 0,
        lo_encrypt_type: 0,
        lo_encrypt_key_size: 0,
        lo_flags: LO_FLAGS_AUTOCLEAR as u32,
        lo_file_name: [0; 64],
        lo_crypt_name: [0; 64],
        lo_encrypt_key: [0; 32],
        lo_init: [0; 2],
    };
    Ok(loop_config { fd: u32::try_from(file)?, block_size: 0, info, __reserved: [0; 8] })
}
