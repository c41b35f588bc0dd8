//! Runs the commands of a build: output to the log, its end kept for the error, nothing left running.

use std::collections::VecDeque;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};

use super::BuildFailed;

/// How much of the output an error shows.
const TAIL_LINES: usize = 20;

/// The log of a build; components that run at once share it, so every line names its component.
#[derive(Clone)]
pub struct Log {
    path: PathBuf,
    file: Arc<Mutex<fs_err::File>>,
}

impl Log {
    /// Appends, because another build may be writing to it until we have the lock.
    pub fn open(path: &Path) -> Result<Log> {
        if let Some(parent) = path.parent() {
            fs_err::create_dir_all(parent)?;
        }
        let file = fs_err::OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Log { path: path.to_owned(), file: Arc::new(Mutex::new(file)) })
    }

    /// Forgets earlier builds.
    pub fn clear(&self) -> Result<()> {
        Ok(fs_err::OpenOptions::new().write(true).open(&self.path)?.set_len(0)?)
    }

    fn line(&self, component: &str, line: &str) {
        // A full disk must fail the command that fills it, not the log of it.
        if let Ok(mut file) = self.file.lock() {
            let _ = writeln!(file, "[{component}] {line}");
        }
    }
}

/// Runs commands for one component.
#[derive(Clone)]
pub struct Shell {
    component: String,
    log: Log,
}

impl Shell {
    pub fn new(component: &str, log: &Log) -> Shell {
        Shell { component: component.to_owned(), log: log.clone() }
    }

    /// Runs a command to its end.
    pub async fn run(&self, command: &mut Command) -> Result<()> {
        self.output(command, false).await.map(drop)
    }

    /// Runs a command and gives what it printed.
    pub async fn read(&self, command: &mut Command) -> Result<String> {
        self.output(command, true).await
    }

    /// Starts a command that goes on running; its output goes to the log.
    pub fn start(&self, command: &mut Command) -> Result<Running> {
        let file = self
            .log
            .file
            .lock()
            .map_or_else(|e| e.into_inner().file().try_clone(), |f| f.file().try_clone())?;
        command.stdout(file.try_clone()?).stderr(file);
        self.spawn(command)
    }

    /// An error about a command, with the end of its output.
    pub fn failed(&self, command: &Command, what: String, tail: String) -> anyhow::Error {
        let command = describe(command);
        BuildFailed { component: self.component.clone(), command, what, tail, log: self.log.path.clone() }
            .into()
    }

    async fn output(&self, command: &mut Command, keep: bool) -> Result<String> {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut running = self.spawn(command)?;
        let (stdout, stderr) = (running.child.stdout.take(), running.child.stderr.take());
        let (mut kept, tail) = (String::new(), Mutex::new(VecDeque::new()));
        let ((), (), status) = tokio::join!(
            each_line(stdout, |line| if keep {
                kept += line;
                kept.push('\n');
            } else {
                self.note(&tail, line);
            }),
            each_line(stderr, |line| self.note(&tail, line)),
            running.child.wait(),
        );
        let status = status.with_context(|| format!("waiting for `{}`", describe(command)))?;
        running.group = None;
        if status.success() {
            return Ok(kept);
        }
        let tail: Vec<String> = tail.into_inner().unwrap_or_default().into();
        let what = match status.code() {
            Some(code) => format!("exited with status {code}"),
            None => format!("was ended by a signal ({status})"),
        };
        Err(self.failed(command, what, tail.join("\n")))
    }

    fn spawn(&self, command: &mut Command) -> Result<Running> {
        self.log.line(&self.component, &format!("$ {}", describe(command)));
        command.stdin(Stdio::null()).process_group(0).kill_on_drop(true);
        // SAFETY: the closure makes one system call, which is allowed between fork and exec. It sees to it
        // that the command ends with us even when we are killed; spawning threads live as long as we do.
        unsafe {
            command.pre_exec(|| Ok(rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?));
        }
        let child = command.spawn().with_context(|| format!("starting `{}`", describe(command)))?;
        let group = child.id().and_then(|id| Pid::from_raw(id as i32));
        Ok(Running { child, group })
    }

    fn note(&self, tail: &Mutex<VecDeque<String>>, line: &str) {
        self.log.line(&self.component, line);
        if let Ok(mut tail) = tail.lock() {
            if tail.len() == TAIL_LINES {
                tail.pop_front();
            }
            tail.push_back(line.to_owned());
        }
    }
}

/// A command with everything it started: dropping it ends them all.
pub struct Running {
    pub child: Child,
    group: Option<Pid>,
}

impl Running {
    /// Asks it to end, and waits; after `grace` it is killed.
    pub async fn stop(mut self, grace: std::time::Duration) -> Result<()> {
        if let Some(pid) = self.group {
            // It may have ended by itself.
            let _ = rustix::process::kill_process(pid, Signal::TERM);
        }
        if let Ok(status) = tokio::time::timeout(grace, self.child.wait()).await {
            status?;
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(group) = self.group {
            // Nobody may be left in it, which is as good.
            let _ = rustix::process::kill_process_group(group, Signal::KILL);
        }
    }
}

async fn each_line(stream: Option<impl AsyncRead + Unpin>, mut then: impl FnMut(&str)) {
    let Some(stream) = stream else { return };
    let mut reader = BufReader::new(stream);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).await.is_ok_and(|length| length > 0) {
        then(String::from_utf8_lossy(&line).trim_end_matches('\n'));
        line.clear();
    }
}

fn describe(command: &Command) -> String {
    let command = command.as_std();
    let words: Vec<_> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy())
        .collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn shell(dir: &Path) -> Shell {
        Shell::new("test", &Log::open(&dir.join("log")).unwrap())
    }

    fn sh(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[tokio::test]
    async fn output_is_kept_or_logged() {
        let dir = tempfile::tempdir().unwrap();
        let shell = shell(dir.path());
        assert_eq!(shell.read(&mut sh("echo one; echo two >&2")).await.unwrap(), "one\n");
        shell.run(&mut sh("echo three")).await.unwrap();
        let log = std::fs::read_to_string(dir.path().join("log")).unwrap();
        assert!(
            log.contains("[test] two\n") && log.contains("[test] three\n") && !log.contains("[test] one"),
            "{log}"
        );
    }

    #[tokio::test]
    async fn a_failure_has_the_command_the_status_and_the_end_of_the_output() {
        let dir = tempfile::tempdir().unwrap();
        let error = shell(dir.path()).run(&mut sh("seq 1 50; exit 3")).await.unwrap_err();
        let failed = error.downcast_ref::<BuildFailed>().unwrap();
        assert_eq!(failed.what, "exited with status 3");
        assert!(failed.command.starts_with("sh -c seq"), "{}", failed.command);
        assert_eq!(failed.tail.lines().count(), TAIL_LINES);
        assert!(failed.tail.ends_with("\n50"), "{}", failed.tail);
    }

    #[tokio::test]
    async fn dropping_ends_grandchildren_too() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pid");
        let shell = shell(dir.path());
        let mut command = sh(&format!("sleep 60 & echo $! > {}; wait", file.display()));
        let cancelled = tokio::time::timeout(Duration::from_millis(500), shell.run(&mut command)).await;
        assert!(cancelled.is_err());
        let pid: u32 = std::fs::read_to_string(&file).unwrap().trim().parse().unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
        let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        assert!(state.is_empty() || state.contains(") Z "), "{state}");
    }
}
