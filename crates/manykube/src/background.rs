//! Processes of ours that go on when the command that started them has ended: this program again, called by the name
//! of a hidden command.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context as _, Result};
use model::Home;

/// `COMMAND HOME CACHE WORD…`. What it says is in the log; it is never waited for.
pub fn spawn(home: &Home, command: &str, words: &[&str], log: File) -> Result<()> {
    let mut program = Command::new("/proc/self/exe");
    program.arg(command).arg(home.root()).arg(home.cache()).args(words);
    program.current_dir("/").stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    // Not the terminal's Ctrl-C.
    program.process_group(0);
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
