//! Somebody who is not root, with a home of their own in the lab.

use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::{Lab, Ran};

/// Nobody of this host has this number.
const UID: u32 = 54_321;

pub struct User<'a> {
    lab: &'a Lab,
    home: PathBuf,
}

impl Lab {
    /// A user who has no rights but those of everybody, in an open lab.
    pub fn user(&self) -> User<'_> {
        std::fs::copy(Lab::program(), self.path("manykube")).expect("copy the program");
        let engine = self.engine.as_ref().expect("the lab has an engine");
        // The same socket by a name that users may look up.
        std::fs::hard_link(engine.socket(), self.path("docker.sock")).expect("link the socket");
        let home = self.path("user");
        std::fs::create_dir_all(&home).expect("make the user's home");
        chown(&home, Some(UID), Some(UID)).expect("give it away");
        User { lab: self, home }
    }
}

impl User<'_> {
    pub fn path(&self, name: &str) -> PathBuf {
        self.home.join(name)
    }

    /// From now on the user belongs to the group of the engine's socket.
    pub fn may_use_the_engine(&self) {
        let socket = self.socket();
        chown(&socket, None, Some(UID)).expect("give the socket to the user's group");
        std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o660)).expect("chmod");
    }

    fn socket(&self) -> PathBuf {
        self.lab.path("docker.sock")
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(self.lab.path("manykube"));
        command.args(args).stdin(Stdio::null());
        command.env("MANYKUBE_HOME", self.path(".manykube")).env("MANYKUBE_CACHE", Lab::cache());
        command.env("MANYKUBE_PROFILE", "minikube");
        command.env("DOCKER_HOST", format!("unix://{}", self.socket().display()));
        self.become_user(&mut command);
        command
    }

    fn become_user(&self, command: &mut Command) {
        command.env("HOME", &self.home).env("KUBECONFIG", self.path(".kube/config"));
        command.current_dir(&self.home).uid(UID).gid(UID);
    }

    pub fn manykube(&self, args: &[&str]) -> Ran {
        ran(&format!("manykube {}", args.join(" ")), self.command(args))
    }

    /// Any program, as this user.
    pub fn run(&self, program: &Path, args: &[&str]) -> Ran {
        let mut command = Command::new(program);
        command.args(args);
        self.become_user(&mut command);
        ran(&format!("{} {}", program.display(), args.join(" ")), command)
    }
}

fn ran(shown: &str, mut command: Command) -> Ran {
    let began = Instant::now();
    let output = command.output().expect("run as another user");
    Ran::new(shown.to_owned(), output, began.elapsed())
}
