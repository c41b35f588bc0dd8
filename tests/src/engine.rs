//! A Docker engine of a test's own: its socket and its bridges are the lab's. Its data are shared by the tests of a
//! work tree, one after the other, so that the node image is brought to an engine once.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::far::{self, Far};
use crate::sshd::Sshd;
use crate::{Ran, certificates, eventually};

/// Bit 24 of the effective ones.
const SYS_RESOURCE: u64 = 1 << 24;

pub struct Engine {
    dir: PathBuf,
    process: Option<Child>,
    /// The way to it, if it is elsewhere.
    sshd: Option<Sshd>,
    /// Whose network and files it has, if not ours.
    far: Option<Far>,
    /// Of data that are shared: one engine has them at a time.
    _turn: Option<File>,
}

impl Engine {
    /// In the network namespace of this thread, with data of its own. `dir` is to be on a real disk, and its path
    /// short: the engine has sockets in it.
    pub fn start(dir: &Path) -> Engine {
        let mut engine = Engine::new(dir);
        engine.up();
        engine
    }

    /// The same with data that are kept. Waits for its turn, and clears away what a test that was killed has left.
    pub fn shared(dir: &Path) -> Engine {
        std::fs::create_dir_all(dir).expect("make the engine's directory");
        let turn = File::create(dir.join("turn")).expect("the lock of the engine's data");
        turn.lock().expect("wait for the engine's data");
        let mut engine = Engine::new(dir);
        engine._turn = Some(turn);
        engine.bury();
        engine.up();
        engine.sweep();
        engine
    }

    /// As if on another host: with a network of its own, which has a cable to ours and no other way, and without
    /// the files below `hidden`. It is reached by SSH, or by TCP with TLS.
    pub fn far(dir: &Path, hidden: &Path) -> Engine {
        let far = Far::new(hidden);
        certificates::make(&dir.join("tls"), far::ADDRESS);
        let mut engine = Engine::new(dir);
        engine.sshd = Some(Sshd::start(&dir.join("ssh"), &far, &engine.socket()));
        engine.far = Some(far);
        engine.up();
        engine
    }

    fn new(dir: &Path) -> Engine {
        Engine { dir: dir.to_owned(), process: None, sshd: None, far: None, _turn: None }
    }

    /// How commands are told where it is.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        match &self.sshd {
            Some(sshd) => vec![("DOCKER_HOST", "ssh://far".to_owned()), ("PATH", sshd.path())],
            None => vec![("DOCKER_HOST", self.host())],
        }
    }

    /// The other way to one that is elsewhere.
    pub fn by_tls(&self) -> Vec<(&'static str, String)> {
        let host = ("DOCKER_HOST", format!("tcp://{}", self.tls_address()));
        vec![
            host,
            ("DOCKER_TLS_VERIFY", "1".to_owned()),
            ("DOCKER_CERT_PATH", self.tls("").display().to_string()),
        ]
    }

    fn tls_address(&self) -> String {
        format!("{}:2376", far::ADDRESS)
    }

    fn tls(&self, name: &str) -> PathBuf {
        self.dir.join("tls").join(name)
    }

    /// How often ssh was let in.
    pub fn greetings(&self) -> usize {
        self.sshd.as_ref().map_or(0, Sshd::greetings)
    }

    fn host(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    pub fn socket(&self) -> PathBuf {
        self.dir.join("docker.sock")
    }

    /// Starts it, again perhaps, and waits until it answers. It gives its containerd 15 s, which on a busy machine may be
    /// too few: whoever else runs engines starts them again, too.
    pub fn up(&mut self) {
        self.spawn();
        eventually("the engine", Duration::from_secs(90), || {
            if let Some(Ok(Some(ended))) = self.process.as_mut().map(Child::try_wait) {
                self.spawn();
                return Err(format!("it ended: {ended}"));
            }
            let ran = self.docker(&["version"]);
            if ran.code == 0 { Ok(()) } else { Err(ran.stderr) }
        });
    }

    fn spawn(&mut self) {
        std::fs::create_dir_all(&self.dir).expect("make the engine's directory");
        let at = |name: &str| self.dir.join(name);
        let log = File::options().create(true).append(true).open(at("log")).expect("the engine's log");
        // A test that is killed takes its engine along, and that its containers.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM"]);
        if let Some(far) = &self.far {
            command.args(far.enter());
        }
        command.arg("dockerd");
        command.arg("--data-root").arg(at("data")).arg("--exec-root").arg(at("run"));
        command.arg("--pidfile").arg(at("pid")).arg("-H").arg(self.host());
        command.args(["--bip", "10.201.0.1/24"]);
        if self.far.is_some() {
            command.arg("-H").arg(format!("tcp://{}", self.tls_address())).arg("--tlsverify");
            for (option, name) in [("cacert", "ca"), ("cert", "server-cert"), ("key", "server-key")] {
                command.arg(format!("--tls{option}={}", self.tls(&format!("{name}.pem")).display()));
            }
        }
        if !has_all_capabilities() {
            command.arg("--add-runtime").arg(format!("less={}", less().display()));
            command.args(["--default-runtime", "less"]);
        }
        let log_too = log.try_clone().expect("the engine's log");
        command.stdin(Stdio::null()).stdout(log).stderr(log_too);
        let started = command.spawn();
        self.process = Some(started.expect("dockerd: it comes with Debian's docker.io, see the Makefile"));
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

    /// As by the kernel that has no memory left: its containers live on without it.
    pub fn crash(&mut self) {
        let Some(process) = self.process.as_mut() else { return };
        process.kill().expect("kill the engine");
        self.reap();
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// It was killed.
    pub fn reap(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.wait().expect("wait for the engine");
        }
    }

    /// The engine of a test that was killed has been asked to end; where it does not, it is made to.
    fn bury(&self) {
        let pid =
            std::fs::read_to_string(self.dir.join("pid")).ok().and_then(|text| text.trim().parse().ok());
        let Some(pid) = pid.map(Pid::from_raw) else { return };
        let lives = || {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(&*self.dir.join("data").to_string_lossy())
        };
        let asked = Instant::now();
        while lives() {
            if asked.elapsed() > Duration::from_secs(30) {
                let _ = kill(pid, Signal::SIGKILL);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let _ = std::fs::remove_file(self.dir.join("pid"));
    }

    /// What clusters have left in it: containers, networks, volumes.
    pub fn left(&self) -> String {
        if self.process.is_none() {
            return String::new();
        }
        let lists = [
            &["ps", "--all", "--format", "container {{.Names}}"][..],
            &["network", "ls", "--filter", "type=custom", "--format", "network {{.Name}}"],
            &["volume", "ls", "--format", "volume {{.Name}}"],
        ];
        lists.map(|list| self.docker(list).ok().stdout).concat()
    }

    /// All but the node images.
    pub fn sweep(&self) {
        let each = |list: &[&str], remove: &[&str], keep: &str| {
            let found = self.docker(list).stdout;
            let found: Vec<&str> =
                found.lines().filter(|l| keep.is_empty() || !l.starts_with(keep)).collect();
            if !found.is_empty() {
                self.docker(&[remove, &found].concat());
            }
        };
        each(&["ps", "--all", "--quiet"], &["rm", "--force", "--volumes"], "");
        each(&["network", "ls", "--quiet", "--filter", "type=custom"], &["network", "rm"], "");
        each(&["volume", "ls", "--quiet"], &["volume", "rm", "--force"], "");
        let format = "{{.Repository}}:{{.Tag}}";
        each(&["images", "--format", format], &["rmi", "--force"], "manykube/node:v");
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
        if self.process.is_some() {
            self.sweep();
        }
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

/// The runtime that asks for less.
pub(crate) fn less() -> PathBuf {
    // Tests are built into a directory below that of programs.
    let test = std::env::current_exe().expect("this test");
    let less = test.ancestors().nth(2).expect("a directory above").join("runc-less");
    assert!(less.is_file(), "{} is not built", less.display());
    less
}

pub(crate) fn has_all_capabilities() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("CapEff:"));
    let effective = line.and_then(|text| u64::from_str_radix(text.trim(), 16).ok());
    effective.is_some_and(|bits| bits & SYS_RESOURCE != 0)
}
