//! Processes of ours that go on when the command that started them has ended: this program again, called by the name
//! of a hidden command.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use drivers::descriptors;
use model::Home;
use rustix::process::{Signal, set_parent_process_death_signal};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, copy, split};
use tokio::net::{TcpListener, TcpStream};

/// Between two children: from the first of these to the second, twice as long each time.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));
/// One that lived this long did not die of how it began.
const LONG: Duration = Duration::from_secs(60);

/// `COMMAND HOME CACHE WORD…`. What it says is in the log; it is never waited for.
pub fn spawn(home: &Home, command: &str, words: &[&str], log: File) -> Result<()> {
    let mut program = Command::new("/proc/self/exe");
    program.arg(command).arg(home.root()).arg(home.cache()).args(words);
    program.current_dir("/").stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    // Not the terminal's Ctrl-C.
    program.process_group(0);
    descriptors::keep_from(&mut program);
    program.spawn().with_context(|| format!("start {command}"))?;
    Ok(())
}

/// The other end: what comes after `COMMAND`.
pub fn main<const N: usize>(
    args: &[OsString],
    work: impl AsyncFnOnce(&Home, [&str; N]) -> Result<()>,
) -> ExitCode {
    let [root, cache, words @ ..] = args else { return ExitCode::FAILURE };
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    let words: Vec<&str> = words.iter().map(|word| word.as_ref()).collect();
    let Ok(words) = <[&str; N]>::try_from(words) else { return ExitCode::FAILURE };
    let home = Home::new(Path::new(root), Some(Path::new(cache).to_owned()));
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let done = runtime.context("start the runtime").and_then(|runtime| {
        let _ = rustix::process::setsid();
        let done = runtime.block_on(work(&home, words));
        // A thread of it may still be waiting for something.
        runtime.shutdown_background();
        done
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("{e:#}");
            ExitCode::FAILURE
        }
    }
}

/// Has a child do the work, `COMMAND ARGS…`, and starts another one when something has ended it: a signal, as the kernel
/// sends for want of memory, or a panic. What ends by itself has its reason.
pub fn supervise(command: &str, args: &[OsString], wanted: impl Fn() -> bool) -> ExitCode {
    let _ = rustix::process::setsid();
    let mut pause = PAUSES.0;
    while wanted() {
        let began = Instant::now();
        let ended = Command::new("/proc/self/exe").arg(command).args(args).status();
        match ended.map(|ended| ended.code()) {
            Ok(Some(0)) => return ExitCode::SUCCESS,
            Ok(Some(1)) => return ExitCode::FAILURE,
            Ok(how) => eprintln!("{command} was ended ({how:?}), and is started again"),
            Err(e) => eprintln!("start {command}: {e}"),
        }
        pause = next_pause(pause, began.elapsed());
        std::thread::sleep(pause);
    }
    ExitCode::SUCCESS
}

/// In the child: without its parent nobody would know of it.
pub fn end_with_parent() {
    let _ = set_parent_process_death_signal(Some(Signal::TERM));
}

fn next_pause(before: Duration, lived: Duration) -> Duration {
    if lived >= LONG { PAUSES.0 } else { (before * 2).min(PAUSES.1) }
}

/// Connections, one after the other, for ever.
pub async fn take(listener: &TcpListener, mut each: impl FnMut(TcpStream)) {
    loop {
        match listener.accept().await {
            Ok((client, _)) => each(client),
            // Given up before we took it, or there are no descriptors left: no reason to stop, nor to hurry.
            Err(_) => tokio::time::sleep(PAUSES.0).await,
        }
    }
}

/// Joins a client to a server. The end of what the server says is the end; a client that has said all may still wait.
pub async fn relay(client: impl AsyncRead + AsyncWrite + Unpin, server: impl AsyncRead + AsyncWrite + Unpin) {
    let ((mut from, mut to), (mut answer, mut question)) = (split(client), split(server));
    let up = async {
        let _ = copy(&mut from, &mut question).await;
        let _ = question.shutdown().await;
        std::future::pending::<()>().await
    };
    let down = async {
        let _ = copy(&mut answer, &mut to).await;
        let _ = to.shutdown().await;
    };
    tokio::select! {
        () = up => {}
        () = down => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_dies_young_waits_longer() {
        let second = Duration::from_secs(1);
        assert_eq!(next_pause(second, second), second * 2);
        assert_eq!(next_pause(PAUSES.1, second), PAUSES.1);
        assert_eq!(next_pause(PAUSES.1, LONG), PAUSES.0);
    }

    /// By whose child the next test is run.
    fn place(parent: impl std::fmt::Display) -> std::path::PathBuf {
        std::env::temp_dir().join(format!("manykube-supervised-{parent}"))
    }

    #[test]
    fn who_was_killed_is_started_again() {
        let dir = place(std::process::id());
        std::fs::create_dir(&dir).unwrap();
        let child = format!("{}::a_child", module_path!().split_once("::").unwrap().1);
        supervise(&child, &["--exact".into()], || true);
        let died = dir.join("died").exists();
        std::fs::remove_dir_all(&dir).unwrap();
        assert!(died, "and lived the second time");
    }

    #[test]
    fn a_child() {
        let dir = place(std::os::unix::process::parent_id());
        if dir.exists() && std::fs::File::create_new(dir.join("died")).is_ok() {
            let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::KILL);
        }
    }
}
