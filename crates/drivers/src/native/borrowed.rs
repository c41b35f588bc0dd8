//! Programs of the node image that are run on the host, so that nothing has to be installed there.

use std::ffi::CString;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

/// The image becomes the command's root, after all else that was to happen before it.
pub fn in_image(command: &mut Command, image_rootfs: &Path) -> Result<()> {
    let root = CString::new(image_rootfs.as_os_str().as_encoded_bytes())?;
    command.env_clear();
    // SAFETY: chroot and chdir are async-signal-safe; nothing is allocated.
    unsafe {
        command.pre_exec(move || {
            nix::unistd::chroot(root.as_c_str())?;
            nix::unistd::chdir(c"/")?;
            Ok(())
        });
    }
    Ok(())
}
