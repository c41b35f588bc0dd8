//! A Docker engine of a test's own: its data, its socket and its bridges are the lab's.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::{Ran, eventually};

/// Bit 24 of the effective ones.
const SYS_RESOURCE: u64 = 1 << 24;

pub struct Engine {
    dir: PathBuf,
    process: Option<Child>,
}

impl Engine {
    /// In the network namespace of this thread. `dir` is to be on a real disk, and its path short: the engine
    /// has sockets in it.
    pub fn start(dir: &Path) -> Engine {
        let mut engine = Engine { dir: dir.to_owned(), process: None };
        engine.up();
        engine
    }

    pub fn host(&self) -> String {
        format!("unix://{}", self.dir.join("docker.sock").display())
    }

    /// Starts it, again perhaps, and waits until it answers.
    pub fn up(&mut self) {
        std::fs::create_dir_all(&self.dir).expect("make the engine's directory");
        let at = |name: &str| self.dir.join(name);
        let log = File::options().create(true).append(true).open(at("log")).expect("the engine's log");
        let mut command = Command::new("dockerd");
        command.arg("--data-root").arg(at("data")).arg("--exec-root").arg(at("run"));
        command.arg("--pidfile").arg(at("pid")).arg("-H").arg(self.host());
        command.args(["--bip", "10.201.0.1/24"]);
        if !has_all_capabilities() {
            // Tests are built into a directory below that of programs.
            let test = std::env::current_exe().expect("this test");
            let less = test.ancestors().nth(2).expect("a directory above").join("runc-less");
            assert!(less.is_file(), "{} is not built", less.display());
            command.arg("--add-runtime").arg(format!("less={}", less.display()));
            command.args(["--default-runtime", "less"]);
        }
        let log_too = log.try_clone().expect("the engine's log");
        command.stdin(Stdio::null()).stdout(log).stderr(log_too);
        let started = command.spawn();
        self.process = Some(started.expect("dockerd: it comes with Debian's docker.io, see the Makefile"));
        eventually("the engine", Duration::from_secs(60), || {
            let ran = self.docker(&["version"]);
            if ran.code == 0 { Ok(()) } else { Err(ran.stderr) }
        });
    }

    /// Its containers end with it.
    pub fn down(&mut self) {
        let Some(mut process) = self.process.take() else { return };
        let pid = Pid::from_raw(i32::try_from(process.id()).expect("a pid"));
        kill(pid, Signal::SIGTERM).expect("ask the engine to end");
        eventually("the end of the engine", Duration::from_secs(60), || match process.try_wait() {
            Ok(Some(_)) => Ok(()),
            other => Err(format!("{other:?}")),
        });
    }

    /// The docker command, with this engine.
    pub fn docker(&self, args: &[&str]) -> Ran {
        let began = Instant::now();
        let output = Command::new("docker").args(args).env("DOCKER_HOST", self.host()).output();
        Ran::new(format!("docker {}", args.join(" ")), output.expect("run docker"), began.elapsed())
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = std::fs::read_to_string(self.dir.join("log")).unwrap_or_default();
            let tail: Vec<&str> = log.lines().rev().take(20).collect();
            eprintln!("--- the engine's last words, the last first\n{}", tail.join("\n"));
            if let Some(process) = self.process.as_mut() {
                let pid = Pid::from_raw(i32::try_from(process.id()).unwrap_or(0));
                let _ = kill(pid, Signal::SIGTERM);
                let _ = process.wait();
            }
        } else {
            self.down();
        }
    }
}

fn has_all_capabilities() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("CapEff:"));
    let effective = line.and_then(|text| u64::from_str_radix(text.trim(), 16).ok());
    effective.is_some_and(|bits| bits & SYS_RESOURCE != 0)
}
