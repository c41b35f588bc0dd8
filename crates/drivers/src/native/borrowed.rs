//! Programs of the node image that run on the host, so that nothing has to be installed there.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// A program of the image, which finds nothing but the image's files, in this network namespace.
fn command(image_rootfs: &Path, program: &str) -> Result<Command> {
    use std::os::unix::process::CommandExt;
    let root = std::ffi::CString::new(image_rootfs.as_os_str().as_encoded_bytes())?;
    let mut command = Command::new(program);
    command.env_clear().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // SAFETY: chroot and chdir are async-signal-safe; nothing is allocated.
    unsafe {
        command.pre_exec(move || {
            nix::unistd::chroot(root.as_c_str())?;
            nix::unistd::chdir(c"/")?;
            Ok(())
        });
    }
    Ok(command)
}

/// Runs it with this input; what it says, if it succeeds.
pub fn run(
    image_rootfs: &Path,
    program: &str,
    args: &[&str],
    env: &[(&str, &str)],
    input: &str,
) -> Result<String> {
    let name = program.rsplit('/').next().unwrap_or(program);
    let mut command = command(image_rootfs, program)?;
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
