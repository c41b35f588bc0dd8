//! A way by SSH to the other host: Debian's sshd there, and ssh here, each with keys and configuration of the test's
//! own.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::eventually;
use crate::far::{self, Far};

pub struct Sshd {
    dir: PathBuf,
    process: Child,
}

impl Sshd {
    /// Whoever comes in finds the engine at `socket`; at the second port no docker command.
    pub fn start(dir: &Path, far: &Far, socket: &Path) -> Sshd {
        std::fs::create_dir_all(dir.join("bin")).expect("make a directory for keys");
        // Where it separates its privileges: Debian has it made when the host starts.
        std::fs::create_dir_all("/run/sshd").expect("make /run/sshd");
        let at = |name: &str| dir.join(name).display().to_string();
        for name in ["host", "key", "stranger"] {
            let mut command = Command::new("ssh-keygen");
            command.args(["-q", "-t", "ed25519", "-N", "", "-f", &at(name)]);
            assert!(command.status().expect("run ssh-keygen").success());
        }
        let write = |name: &str, text: String| std::fs::write(dir.join(name), text).expect("write a file");
        let key = |name: &str| std::fs::read_to_string(dir.join(format!("{name}.pub"))).expect("a key");
        write("authorized", key("key"));
        let address = far::ADDRESS;
        write("known", format!("{address} {0}[{address}]:2222 {0}", key("host")));
        write(
            "sshd_config",
            format!(
                "ListenAddress {address}:22\nListenAddress {address}:2222\nHostKey {}\nAuthorizedKeysFile {}\n\
                 PidFile none\nStrictModes no\nUsePAM no\nPasswordAuthentication no\n\
                 KbdInteractiveAuthentication no\nPermitRootLogin yes\nLogLevel INFO\n\
                 Match LocalPort 22\n  SetEnv DOCKER_HOST=unix://{}\nMatch LocalPort 2222\n  SetEnv PATH=/nowhere\n",
                at("host"),
                at("authorized"),
                socket.display(),
            ),
        );
        let host =
            |name: &str, more: &str| format!("Host {name}\n  HostName {address}\n  User root\n  {more}\n");
        let (own, known) =
            (format!("IdentityFile {}", at("key")), format!("UserKnownHostsFile {}", at("known")));
        write(
            "config",
            [
                "IdentitiesOnly yes\nGlobalKnownHostsFile /dev/null\n".to_owned(),
                host("far bare", &format!("{own}\n  {known}")),
                host("unknown", &format!("{own}\n  UserKnownHostsFile /dev/null")),
                host("stranger", &format!("IdentityFile {}\n  {known}", at("stranger"))),
            ]
            .concat(),
        );
        write("bin/ssh", format!("#!/bin/sh\nexec /usr/bin/ssh -F {} \"$@\"\n", at("config")));
        let program = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(dir.join("bin/ssh"), program).expect("chmod");
        let [enter, args @ ..] = &far.enter()[..] else { panic!("no way there") };
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM"]).arg(enter).args(args);
        command.args(["/usr/sbin/sshd", "-D", "-f", &at("sshd_config"), "-E", &at("log")]);
        let started = command.stdin(Stdio::null()).spawn();
        let process = started.expect("sshd: it comes with Debian's openssh-server, see the Makefile");
        let sshd = Sshd { dir: dir.to_owned(), process };
        eventually("sshd", Duration::from_secs(10), || {
            std::net::TcpStream::connect((address, 22)).map(drop).map_err(|e| format!("{e}: {}", sshd.log()))
        });
        sshd
    }

    /// The directory of an `ssh` that knows the way.
    pub fn path(&self) -> String {
        let before = std::env::var("PATH").unwrap_or_default();
        format!("{}:{before}", self.dir.join("bin").display())
    }

    /// How often somebody was let in.
    pub fn greetings(&self) -> usize {
        self.log().lines().filter(|line| line.contains("Accepted publickey")).count()
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.dir.join("log")).unwrap_or_default()
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- sshd\n{}", self.log());
        }
        // Those who are connected have a process each, which does not end with the first one.
        let pid = self.process.id();
        let children =
            std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        let _ = self.process.kill();
        let _ = self.process.wait();
        for child in children.split_whitespace().filter_map(|pid| pid.parse().ok()) {
            let _ = kill(Pid::from_raw(child), Signal::SIGTERM);
        }
    }
}
