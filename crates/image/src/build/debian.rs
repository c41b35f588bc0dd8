//! The root file system out of Debian packages.

use std::path::Path;

use anyhow::Result;
use tokio::process::Command;

use super::command::Shell;
use super::mirror::Mirrors;

/// Not wanted in a node. Licences stay.
const EXCLUDED: [&str; 5] = [
    "/usr/share/man/*",
    "/usr/share/locale/*",
    "/usr/share/info/*",
    "/usr/share/doc/*",
    "/usr/share/lintian/*",
];
const INCLUDED: [&str; 1] = ["/usr/share/doc/*/copyright"];

/// Besides the release itself: what is mended in it later.
pub const LATER: [&str; 2] = ["updates", "security"];
/// Said by name, because a machine that is not Debian has it but does not trust it.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Leaves the root in `out`.
pub async fn build(shell: &Shell, suite: &str, packages: &[String], work: &Path) -> Result<()> {
    let mut command = Command::new("mmdebstrap");
    command.args(arguments(suite, packages)).arg(work.join("out"));
    command.args(sources(suite, &Mirrors::of_this_machine(), Path::new(KEYRING).exists()));
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

/// As apt has them, one in a line.
fn sources(suite: &str, mirrors: &Mirrors, keyring: bool) -> Vec<String> {
    let trust = if keyring { format!("[signed-by={KEYRING}] ") } else { String::new() };
    let source = |mirror: &str, suite: &str| format!("deb {trust}{mirror} {suite} main");
    let later = LATER.iter().map(|name| {
        let mirror = if *name == "security" { &mirrors.security } else { &mirrors.main };
        source(mirror, &format!("{suite}-{name}"))
    });
    [source(&mirrors.main, suite)].into_iter().chain(later).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_mended_after_the_release_is_in_it() {
        let mirrors = Mirrors { main: "http://a/debian".into(), security: "http://b/debian-security".into() };
        let expected = [
            "deb http://a/debian trixie main",
            "deb http://a/debian trixie-updates main",
            "deb http://b/debian-security trixie-security main",
        ];
        assert_eq!(sources("trixie", &mirrors, false), expected);
        let signed = format!("deb [signed-by={KEYRING}] http://a/debian trixie main");
        assert_eq!(sources("trixie", &mirrors, true)[0], signed);
    }

    #[test]
    fn includes_come_after_excludes_because_the_last_match_wins() {
        let arguments = arguments("trixie", &["a".into(), "b".into()]);
        assert_eq!(arguments[1], "--include=a,b");
        assert_eq!(arguments.last().unwrap(), "trixie");
        let position = |needle: &str| arguments.iter().rposition(|a| a.contains(needle)).unwrap();
        assert!(position("path-include") > position("path-exclude"));
    }
}
