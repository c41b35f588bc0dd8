//! minikube's exit codes that need no cluster: see `system_tests::exit_codes`.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use system_tests::exit_codes::{ROWS, When, Wrong, rows, split};

use super::home::{CONFIG, Home, Run};

const NOBODY: u32 = 65534;

fn home(when: When) -> Home {
    let home = Home::new();
    match when {
        When::Demo | When::Broken(_) => home.with_demo(),
        _ => home,
    }
}

fn spoil(home: &Home, wrong: Wrong) {
    let write = |name: &str, text: &str| {
        let dir = home.path().join("profiles").join(name);
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("config.json"), text).unwrap();
    };
    match wrong {
        Wrong::Config => write("demo", "{ oops"),
        Wrong::Mode => {
            std::fs::set_permissions(home.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        }
        Wrong::Name => write("demo-m03", &CONFIG.replace("\"demo\"", "\"demo-m03\"")),
        Wrong::NoControlPlane => write("demo", &CONFIG.replace("\"ControlPlane\":true,", "")),
    }
}

/// Our own program may lie where nobody else can read.
fn as_nobody(home: &Home) -> Command {
    let program = home.dir().join("manykube");
    // By another process: whoever is forked while this one has the copy open for writing keeps it from being run.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_manykube")).arg(&program).status().unwrap();
    assert!(copied.success());
    for (path, mode) in [(home.dir(), 0o777), (&program, 0o755)] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let mut command = Command::new(program);
    if nix::unistd::geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

#[test]
fn every_exit_code_that_needs_no_cluster() {
    let without = |when| !matches!(when, When::Running | When::Tunnel | When::Paused);
    for (row, when, line, words) in rows(without) {
        let home = home(when);
        if let When::Broken(wrong) = when {
            spoil(&home, wrong);
        }
        let (variables, args) = split(line, home.dir());
        let mut command = if when == When::Nobody { as_nobody(&home) } else { home.command("") };
        command.args(args).env_clear().env("HOME", home.dir()).env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        command
            .env("MANYKUBE_HOME", home.path())
            .env("DOCKER_HOST", "unix:///nowhere/docker.sock")
            .envs(variables);
        Run(command.output().unwrap(), format!("{}: {line}", row.id)).expect(row.code, words);
    }
}

#[test]
fn the_table_and_the_program_agree() {
    for reason in model::Reason::ALL {
        let row = ROWS.iter().find(|row| row.id == reason.id());
        assert_eq!(row.map(|r| r.code), Some(i32::from(reason.exit_code())), "{}", reason.id());
    }
}
