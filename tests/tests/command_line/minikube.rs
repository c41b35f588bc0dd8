//! The program as `minikube`, and what belongs to that name.

use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use system_tests::{Lab, Ran};

/// A `minikube` and a `kubectl` on the PATH, and the home that goes with the first name.
pub struct Minikube<'a> {
    pub lab: &'a Lab,
}

impl Minikube<'_> {
    pub fn new(lab: &Lab) -> Minikube<'_> {
        for dir in [".minikube", "bin"] {
            std::fs::create_dir(lab.path(dir)).expect("make a directory");
        }
        // The lab's own eyes look for machines below its home.
        symlink(lab.path(".minikube"), lab.home()).expect("link the home");
        for name in ["minikube", "kubectl"] {
            symlink(Lab::program(), lab.path("bin").join(name)).expect("link the program");
        }
        Minikube { lab }
    }

    pub fn command(&self, program: &str, args: &[&str]) -> Command {
        let mut command = self.lab.command(args);
        let environment: Vec<_> =
            command.get_envs().map(|(k, v)| (k.to_owned(), v.map(ToOwned::to_owned))).collect();
        command = Command::new(self.lab.path("bin").join(program));
        command.args(args).stdin(Stdio::null());
        for (name, value) in environment {
            value.map(|value| command.env(name, value));
        }
        let path = format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", self.lab.path("bin").display());
        command.env("MINIKUBE_HOME", self.lab.path("")).env_remove("MANYKUBE_HOME").env("PATH", path);
        // Its default is its own name.
        command.env_remove("MANYKUBE_PROFILE");
        command
    }

    pub fn run(&self, args: &[&str]) -> Ran {
        let began = Instant::now();
        let output = self.command("minikube", args).output().expect("run minikube");
        Ran::new(format!("minikube {}", args.join(" ")), output, began.elapsed())
    }

    pub fn line(&self, line: &str) -> Ran {
        self.run(&line.split(' ').collect::<Vec<_>>())
    }

    pub fn kubectl(&self, args: &[&str]) -> Ran {
        let output = self.command("kubectl", args).output().expect("run kubectl");
        Ran::new(format!("kubectl {}", args.join(" ")), output, Duration::ZERO)
    }

    pub fn home(&self) -> PathBuf {
        self.lab.path(".minikube")
    }
}

impl Drop for Minikube<'_> {
    fn drop(&mut self) {
        let deleted = self.line("delete --all");
        if deleted.code != 0 && !std::thread::panicking() {
            panic!("the clusters could not be removed: {}", deleted.stderr);
        }
    }
}
