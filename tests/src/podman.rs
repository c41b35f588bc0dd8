//! podman's service for a test: its data, its socket and its networks are the lab's.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::engine::{has_all_capabilities, less};
use crate::{Ran, eventually};

pub struct Podman {
    dir: PathBuf,
    /// It takes no longer path for it than 50 letters.
    run: TempDir,
    process: Child,
}

impl Podman {
    /// In the network namespace of this thread. `dir` is to be on a real disk, and its path short.
    pub fn start(dir: &Path) -> Podman {
        std::fs::create_dir_all(dir).expect("make podman's directory");
        let mut text = "[engine]\nevents_logger = \"file\"\n".to_owned();
        if !has_all_capabilities() {
            let less = less();
            text += &format!("runtime = \"less\"\n[engine.runtimes]\nless = [\"{}\"]\n", less.display());
        }
        std::fs::write(dir.join("containers.conf"), text).expect("write podman's configuration");
        let run = TempDir::with_prefix_in("mkp-", "/run").expect("make a directory");
        let log = File::create(dir.join("log")).expect("podman's log");
        // A test that is killed takes the service along.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM", "podman"]).args(options(dir, run.path()));
        command.args(["system", "service", "-t", "0"]).arg(host(dir));
        command.env("CONTAINERS_CONF", dir.join("containers.conf"));
        let log_too = log.try_clone().expect("podman's log");
        command.stdin(Stdio::null()).stdout(log).stderr(log_too);
        let process = command.spawn().expect("podman: it comes with Debian's package, see the Makefile");
        eventually("podman's service", Duration::from_secs(30), || {
            std::os::unix::net::UnixStream::connect(dir.join("podman.sock")).map_err(|e| e.to_string())
        });
        Podman { dir: dir.to_owned(), run, process }
    }

    pub fn host(&self) -> String {
        host(&self.dir)
    }

    /// The podman command, with the same data.
    pub fn podman(&self, args: &[&str]) -> Ran {
        let began = Instant::now();
        let mut command = Command::new("podman");
        command
            .args(options(&self.dir, self.run.path()))
            .args(args)
            .env("CONTAINERS_CONF", self.dir.join("containers.conf"));
        let output = command.output().expect("run podman");
        Ran::new(format!("podman {}", args.join(" ")), output, began.elapsed())
    }
}

fn host(dir: &Path) -> String {
    format!("unix://{}", dir.join("podman.sock").display())
}

fn options(dir: &Path, run: &Path) -> Vec<String> {
    let at = |name: &str| dir.join(name).to_string_lossy().into_owned();
    let pairs = [
        ("--root", at("data")),
        ("--runroot", run.to_string_lossy().into_owned()),
        ("--network-config-dir", at("networks")),
    ];
    let pairs = pairs.into_iter().flat_map(|(option, value)| [option.to_owned(), value]);
    pairs.chain(["--cgroup-manager=cgroupfs".to_owned()]).collect()
}

impl Drop for Podman {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = std::fs::read_to_string(self.dir.join("log")).unwrap_or_default();
            let tail: Vec<&str> = log.lines().rev().take(20).collect();
            eprintln!("--- podman's last words, the last first\n{}", tail.join("\n"));
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
        // It mounts its own data.
        let _ = nix::mount::umount2(&self.dir.join("data/overlay"), nix::mount::MntFlags::MNT_DETACH);
    }
}
