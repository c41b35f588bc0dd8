//! The root file system out of Debian packages.

use std::path::Path;

use anyhow::Result;
use tokio::process::Command;

use super::command::Shell;
use super::mirror;

/// Not wanted in a node. Licences stay.
const EXCLUDED: [&str; 5] = [
    "/usr/share/man/*",
    "/usr/share/locale/*",
    "/usr/share/info/*",
    "/usr/share/doc/*",
    "/usr/share/lintian/*",
];
const INCLUDED: [&str; 1] = ["/usr/share/doc/*/copyright"];

/// Leaves the root in `out`.
pub async fn build(shell: &Shell, suite: &str, packages: &[String], work: &Path) -> Result<()> {
    let mut command = Command::new("mmdebstrap");
    command.args(arguments(suite, packages)).arg(work.join("out"));
    // The mirror this machine uses itself; without one, mmdebstrap knows Debian's.
    command.args(mirror::of_this_machine());
    command.env("LC_ALL", "C").current_dir(work);
    shell.run(&mut command).await
}

/// All but the directory and the mirror, which follow the suite.
fn arguments(suite: &str, packages: &[String]) -> Vec<String> {
    let mut arguments = vec!["--variant=essential".to_owned(), format!("--include={}", packages.join(","))];
    arguments.extend(EXCLUDED.iter().map(|path| format!("--dpkgopt=path-exclude={path}")));
    arguments.extend(INCLUDED.iter().map(|path| format!("--dpkgopt=path-include={path}")));
    arguments.push(suite.to_owned());
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn includes_come_after_excludes_because_the_last_match_wins() {
        let arguments = arguments("trixie", &["a".into(), "b".into()]);
        assert_eq!(arguments[1], "--include=a,b");
        assert_eq!(arguments.last().unwrap(), "trixie");
        let position = |needle: &str| arguments.iter().rposition(|a| a.contains(needle)).unwrap();
        assert!(position("path-include") > position("path-exclude"));
    }
}
