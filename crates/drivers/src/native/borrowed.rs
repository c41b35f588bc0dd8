//! Programs of the node image that run on the host, so that nothing has to be installed there.

use std::ffi::CString;
use std::io::Write;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The image becomes the command's root, after all else that was to happen before it: it finds nothing but
/// the image's files.
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

/// Runs a program in this network namespace with this input; what it says, if it succeeds.
pub fn run(
    image_rootfs: &Path,
    program: &str,
    args: &[&str],
    env: &[(&str, &str)],
    input: &str,
) -> Result<String> {
    let name = program.rsplit('/').next().unwrap_or(program);
    let mut command = Command::new(program);
    in_image(&mut command, image_rootfs)?;
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.args(args).envs(env.iter().copied());
    let mut child = command.spawn().with_context(|| format!("run {name} of {}", image_rootfs.display()))?;
    let mut stdin = child.stdin.take().with_context(|| format!("{name}'s input"))?;
    stdin.write_all(input.as_bytes()).with_context(|| format!("write to {name}"))?;
    drop(stdin);
    let output = child.wait_with_output().with_context(|| format!("wait for {name}"))?;
    if !output.status.success() {
        bail!("{name} refused: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
