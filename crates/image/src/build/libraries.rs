//! Which shared libraries programs of the Debian root load, and what busybox can do: asked there.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};
use tokio::process::Command;

use super::command::Shell;

/// Libraries and the loader, and iptables' own modules; paths below `root`.
pub async fn of(shell: &Shell, root: &Path, programs: &[&str]) -> Result<Vec<String>> {
    let mut ldd = inside(root, "ldd");
    let text = shell.read(ldd.args(programs.iter().map(|path| format!("/{path}")))).await?;
    let mut found = BTreeSet::new();
    for path in loaded(&text) {
        found.insert(merged(path));
    }
    // Matches and targets of iptables are loaded by name while it runs, which ldd cannot see.
    for directory in fs_err::read_dir(root.join("usr/lib"))? {
        let modules = directory?.path().join("xtables");
        if modules.is_dir() {
            for module in fs_err::read_dir(&modules)? {
                let path = module?.path();
                let relative = path.strip_prefix(root).context("a module outside of the root")?;
                found.insert(relative.to_string_lossy().into_owned());
            }
        }
    }
    Ok(found.into_iter().collect())
}

/// The commands that busybox has.
pub async fn applets(shell: &Shell, root: &Path) -> Result<Vec<String>> {
    let text = shell.read(inside(root, "busybox").arg("--list")).await?;
    Ok(text.lines().map(str::to_owned).collect())
}

fn inside(root: &Path, program: &str) -> Command {
    let mut command = Command::new("chroot");
    command.arg(root).arg(program).env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("LC_ALL", "C");
    command
}

/// The absolute paths in what `ldd` prints: after an arrow, or first in the line.
fn loaded(ldd: &str) -> impl Iterator<Item = &str> {
    ldd.lines().filter(|line| line.starts_with(char::is_whitespace)).filter_map(|line| {
        let line = line.split_once("=> ").map_or(line, |(_, path)| path);
        line.split_whitespace().next().filter(|word| word.starts_with('/'))
    })
}

/// `/lib` is `/usr/lib` in Debian.
fn merged(path: &str) -> String {
    let path = path.trim_start_matches('/');
    if path.starts_with("usr/") { path.to_owned() } else { format!("usr/{path}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_ldd_prints() {
        let text = "/usr/sbin/nft:\n\tlinux-vdso.so.1 (0x1)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x2)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x3)\n/usr/bin/static:\n\tnot a dynamic executable\n";
        let found: Vec<_> = loaded(text).map(merged).collect();
        assert_eq!(found, ["usr/lib/x86_64-linux-gnu/libc.so.6", "usr/lib64/ld-linux-x86-64.so.2"]);
    }
}
