//! The program as a user runs it, in a home of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use system_tests::Ran;

/// A home of its own for a test.
pub struct Home(tempfile::TempDir);

/// What every command may make in its home.
const STANDARD: [&str; 7] = ["addons", "cache", "certs", "config", "files", "logs", "machines"];

impl Home {
    pub fn new() -> Home {
        Home(tempfile::tempdir().unwrap())
    }

    pub fn path(&self) -> PathBuf {
        self.dir().join("home")
    }

    pub fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_manykube"));
        command
            .args(line.split_whitespace())
            .env_clear()
            .env("HOME", self.dir())
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            // Whether this host has an engine is not to matter.
            .env("DOCKER_HOST", "unix:///nowhere/docker.sock")
            .env("MANYKUBE_HOME", self.path());
        command
    }

    pub fn run(&self, line: &str) -> Run {
        Run(self.command(line).output().unwrap(), line.to_owned())
    }

    /// As golden files have it.
    pub fn ran(&self, line: &str) -> Ran {
        let output = self.command(line).output().unwrap();
        Ran::new(format!("manykube {line}").trim_end().to_owned(), output, Duration::ZERO)
    }

    pub fn dir(&self) -> &Path {
        self.0.path()
    }

    /// Gives it a profile `demo` of which there is only the configuration.
    pub fn with_demo(self) -> Home {
        let dir = self.path().join("profiles/demo");
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("config.json"), CONFIG).unwrap();
        self
    }

    /// Everything below home that is not one of the standard directories (or a log).
    pub fn made(&self) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.path()) else { return Vec::new() };
        let mut found = Vec::new();
        for entry in entries.flatten() {
            let name = entry.file_name().into_string().unwrap();
            let empty = name == "logs" || is_empty(&entry.path());
            if !STANDARD.contains(&name.as_str()) || !empty {
                found.push(name);
            }
        }
        found
    }
}

pub fn is_empty(dir: &Path) -> bool {
    std::fs::read_dir(dir).is_ok_and(|mut d| d.next().is_none())
}

pub struct Run(pub Output, pub String);

impl Run {
    pub fn code(&self) -> i32 {
        self.0.status.code().unwrap()
    }

    pub fn stdout(&self) -> String {
        String::from_utf8(self.0.stdout.clone()).unwrap()
    }

    pub fn stderr(&self) -> String {
        String::from_utf8(self.0.stderr.clone()).unwrap()
    }

    pub fn expect(&self, code: i32, text: &str) -> &Run {
        let (out, err) = (self.stdout(), self.stderr());
        assert_eq!(self.code(), code, "{}\n{out}{err}", self.1);
        assert!(out.contains(text) || err.contains(text), "{}: no {text:?} in\n{out}{err}", self.1);
        self
    }
}

/// A cluster of two that exists in its configuration only.
pub const CONFIG: &str = r#"{"Name":"demo","Driver":"native","Memory":3072,"CPUs":2,"APIServerPort":8443,
    "KubernetesConfig":{"KubernetesVersion":"v1.37.1","ServiceCIDR":"10.96.0.0/12"},
    "Nodes":[{"Name":"","IP":"192.168.49.2","Port":8443,"KubernetesVersion":"v1.37.1","ControlPlane":true,"Worker":true},
             {"Name":"m02","IP":"192.168.49.3","Port":8443,"KubernetesVersion":"v1.37.1","Worker":true}]}"#;
