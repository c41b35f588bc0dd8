//! One command at a time changes a profile.

use std::cell::RefCell;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use engine::crash;
use model::{Fault, Reason};

use crate::ctx::Ctx;
use crate::report::{Event, Style};
use crate::state::atomic;

/// How often a waiting command looks again. Polled, so that Ctrl-C ends the wait.
const INTERVAL: Duration = Duration::from_millis(50);

/// Held until dropped; the kernel frees it when the process ends, however it ends.
#[derive(Debug)]
pub struct ProfileLock {
    file: File,
    path: PathBuf,
}

impl ProfileLock {
    /// Waits for the command that holds it, and says for which. Ctrl-C ends the wait.
    pub async fn acquire(ctx: &Ctx, profile: &str) -> Result<ProfileLock> {
        let path = ctx.home.profile_lock(profile);
        let holder = RefCell::new(String::new());
        let waiting = |who: String| {
            let message = format!("Waiting for {who}, which is changing \"{profile}\" ...");
            ctx.emit(Event::info(Style::Waiting, message));
            *holder.borrow_mut() = who;
        };
        let too_long = async {
            match ctx.lock_timeout {
                Some(limit) => tokio::time::sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        let command = format!("{} {}", ctx.tool, ctx.called);
        let lock = tokio::select! {
            lock = acquire(&path, &command, &waiting) => lock.with_context(|| format!("lock {}", path.display()))?,
            () = too_long => return Err(held(profile, &holder.borrow()).into()),
            () = ctx.cancel.cancelled() => anyhow::bail!("interrupted"),
        };
        // Nobody else writes there now, so what is half written is a dead one's.
        atomic::sweep_all(&ctx.home.profile(profile));
        crash::place("lock", "after");
        Ok(lock)
    }

    /// Removes the lock's file: the profile is gone. Whoever waits for it makes a new one.
    pub fn remove(self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn held(profile: &str, who: &str) -> Fault {
    let who = if who.is_empty() { "another command" } else { who };
    Fault::new(Reason::ProfileLocked, format!("\"{profile}\" is still being changed by {who}"))
        .advice("Try again when it is done, or wait longer with --lock-timeout")
}

/// As it stands in the lock's file: the process, and what it was called with.
fn holder(text: &str) -> String {
    match text.trim().split_once(' ') {
        _ if text.trim().is_empty() => "another command".to_owned(),
        Some((pid, command)) => format!("process {pid} ({command})"),
        None => format!("process {}", text.trim()),
    }
}

async fn acquire(path: &Path, command: &str, waiting: &dyn Fn(String)) -> Result<ProfileLock> {
    if let Some(dir) = path.parent() {
        fs_err::create_dir_all(dir)?;
    }
    let mut said = false;
    loop {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        // A user who can open it can keep all commands waiting.
        let mut file = options.mode(0o600).open(path)?;
        match file.try_lock() {
            // The one before us may have removed the file: then this is a lock on nothing.
            Ok(()) if !is_at(&file, path) => continue,
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let _ = file.read_to_string(&mut text);
                if !std::mem::replace(&mut said, true) {
                    waiting(holder(&text));
                }
                tokio::time::sleep(INTERVAL).await;
                continue;
            }
            Err(TryLockError::Error(e)) => return Err(e.into()),
        }
        file.set_len(0)?;
        file.rewind()?;
        writeln!(file, "{} {command}", std::process::id())?;
        return Ok(ProfileLock { file, path: path.to_owned() });
    }
}

fn is_at(file: &File, path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|m| file.metadata().is_ok_and(|f| f.ino() == m.ino()))
}

impl Drop for ProfileLock {
    fn drop(&mut self) {
        // Said explicitly: a machine's first process may still hold a copy of the descriptor.
        let _ = self.file.unlock();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[tokio::test]
    async fn the_second_waits_for_the_first_and_knows_its_pid() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("locks/demo.lock");
        let first = acquire(&path, "manykube start", &|_| panic!("free")).await.unwrap();
        let told = Mutex::new(String::new());
        let note = |who| *told.lock().unwrap() = who;
        let second = acquire(&path, "manykube stop", &note);
        tokio::pin!(second);
        tokio::select! {
            _ = &mut second => panic!("taken twice"),
            () = tokio::time::sleep(INTERVAL * 3) => {}
        }
        let (told, pid) = (told.lock().unwrap().clone(), std::process::id());
        assert_eq!(told, format!("process {pid} (manykube start)"));
        // Removed while another waits: that one must not hold the removed file.
        first.remove();
        second.await.unwrap();
        assert!(path.exists());
    }
}
