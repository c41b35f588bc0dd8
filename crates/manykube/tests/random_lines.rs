//! A thousand command lines made of our own words and of nonsense, typed by somebody who may do nothing: each
//! ends by itself with a code of ours, and no line of what it says was meant for us instead of the user.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

const LINES: u32 = 1000;
const PATIENCE: Duration = Duration::from_secs(30);
const NOBODY: u32 = 65534;
/// What a Rust program says only when something was forgotten.
const NOT_FOR_USERS: [&str; 8] =
    ["panicked at", "RUST_BACKTRACE", "stack backtrace", "Os { code", "Error {", "Some(", "Err(", "src/"];

/// From the page that a test keeps true.
fn words() -> (Vec<String>, Vec<String>) {
    let page = include_str!("../../../docs/cli.md");
    let commands = page.lines().filter_map(|l| l.trim_start_matches('#').strip_prefix(" manykube "));
    let flags = page.lines().filter_map(|l| l.strip_prefix("- `")?.split('`').next()).flat_map(|names| {
        names.split([',', ' ']).filter(|w| w.starts_with('-')).map(str::to_owned).collect::<Vec<_>>()
    });
    // Building an image is no matter of a moment.
    let commands = commands.filter(|c| !c.starts_with("node-image build")).map(str::to_owned);
    (commands.collect(), flags.collect())
}

fn line() -> impl Strategy<Value = Vec<String>> {
    let (commands, flags) = words();
    assert!(commands.len() > 30 && flags.len() > 60, "the page has other words now");
    let value = prop_oneof![
        Just(String::new()),
        "[a-z0-9.:/=,-]{1,12}",
        "-?[0-9]{1,20}",
        Just("{{.Host".to_owned()),
        Just("é\u{1b}[31m\n".to_owned()),
        Just("../../x".to_owned()),
        Just("true".to_owned()),
        Just("json".to_owned()),
    ];
    let flag = prop::sample::select(flags);
    let word = prop_oneof![
        3 => (flag.clone(), value.clone()).prop_map(|(f, v)| format!("{f}={v}")),
        2 => flag,
        2 => value,
        1 => Just("--".to_owned()),
    ];
    let command = prop_oneof![8 => prop::sample::select(commands), 1 => "[a-z]{1,8}"];
    (command, prop::collection::vec(word, 0..6))
        .prop_map(|(command, words)| command.split(' ').map(str::to_owned).chain(words).collect())
}

fn run(program: &Path, home: &Path, words: &[String]) -> Result<(), String> {
    let mut command = Command::new(program);
    command.args(words).env_clear().env("HOME", home).env("TMPDIR", home).env("PATH", "/usr/bin:/bin");
    command.current_dir(home).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if nix::unistd::geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    let mut child = command.spawn().map_err(|e| e.to_string())?;
    let began = Instant::now();
    // The outputs are short: no pipe fills up before the end.
    while child.try_wait().map_err(|e| e.to_string())?.is_none() {
        if began.elapsed() > PATIENCE {
            let _ = child.kill();
            return Err(format!("did not end within {PATIENCE:?}"));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let output = child.wait_with_output().map_err(|e| e.to_string())?;
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        None => return Err(format!("{}: {text}", output.status)),
        Some(101) => return Err(format!("exit code 101, a panic's: {text}")),
        Some(_) => {}
    }
    match NOT_FOR_USERS.iter().find(|mark| text.contains(**mark)) {
        Some(mark) => Err(format!("says {mark:?}: {text}")),
        None => Ok(()),
    }
}

#[test]
fn a_thousand_lines_and_no_panic() {
    let dir = tempfile::tempdir().expect("a directory");
    let everybody = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("permissions");
    };
    everybody(dir.path(), 0o755);
    // A copy: our own may lie where nobody else can read.
    let program = dir.path().join("manykube");
    std::fs::copy(env!("CARGO_BIN_EXE_manykube"), &program).expect("copy the program");
    everybody(&program, 0o755);
    let home = dir.path().join("home");
    std::fs::create_dir(&home).expect("a home");
    everybody(&home, 0o777);
    let config =
        Config { cases: LINES, max_shrink_iters: 60, failure_persistence: None, ..Config::default() };
    let result = TestRunner::new(config).run(&line(), |words| {
        run(&program, &home, &words).map_err(|why| TestCaseError::fail(format!("{words:?}: {why}")))
    });
    if let Err(e) = result {
        panic!("{e}");
    }
}
