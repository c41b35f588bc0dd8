//! What a build needs on this machine.

use std::path::Path;

/// Something a build needs that is not installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingTool {
    /// The command or header.
    pub name: &'static str,
    /// The Debian package that has it.
    pub package: &'static str,
}

/// Commands, looked up in PATH.
const COMMANDS: [(&str, &str); 5] = [
    ("go", "golang-go"),
    ("gcc", "gcc"),
    ("mmdebstrap", "mmdebstrap"),
    ("unshare", "util-linux"),
    ("chroot", "coreutils"),
];

/// Headers: any one of the places will do.
const HEADERS: [(&str, &str); 2] = [("seccomp.h", "libseccomp-dev"), ("stdlib.h", "libc6-dev")];

/// Empty when `build` can run.
pub fn missing_tools() -> Vec<MissingTool> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories: Vec<_> = std::env::split_paths(&path).collect();
    let include = [Path::new("/usr/include"), Path::new("/usr/local/include")];
    let commands =
        COMMANDS.iter().filter(|(name, _)| !directories.iter().any(|dir| dir.join(name).is_file()));
    let headers = HEADERS.iter().filter(|(name, _)| !include.iter().any(|dir| dir.join(name).is_file()));
    commands.chain(headers).map(|&(name, package)| MissingTool { name, package }).collect()
}
