//! Certificates on disk: whole files or none, keys readable by their owner only.

use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use fs_err as fs;

use super::issue::Pair;

const SECRET: u32 = 0o600;
const PUBLIC: u32 = 0o644;

/// Held while certificates are looked at and made; released when dropped.
pub struct Lock(#[allow(dead_code, reason = "the open file is the lock")] std::fs::File);

pub fn lock(path: &Path) -> Result<Lock> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let mut options = std::fs::OpenOptions::new();
    let file = options.create(true).truncate(false).write(true).mode(0o600).open(path);
    let file = file.with_context(|| format!("open the lock {}", path.display()))?;
    file.lock().with_context(|| format!("lock {}", path.display()))?;
    Ok(Lock(file))
}

fn file(base: &Path, extension: &str) -> PathBuf {
    PathBuf::from(format!("{}.{extension}", base.display()))
}

pub fn read(path: &Path) -> Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e.into()),
    }
}

/// `(certificate, key)` at `<base>.crt` and `<base>.key`, whichever exist.
pub fn read_pair(base: &Path) -> Result<(Option<String>, Option<String>)> {
    let [cert, key] = of_base(base);
    Ok((read(&cert)?, read(&key)?))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Durable {
    /// What cannot be made again waits for the disk.
    Yes,
    /// A leaf that a power cut emptied is simply made again.
    No,
}

/// A leaf. The key first: a certificate without a key is worth nothing, and a lost key is noticed.
pub fn write_leaf([cert, key]: &[PathBuf; 2], pair: &Pair) -> Result<()> {
    for (path, text, mode) in [(key, &pair.key, SECRET), (cert, &pair.cert, PUBLIC)] {
        prepare(path, text, mode, Durable::No)?;
        std::fs::rename(temporary(path), path).with_context(|| format!("write {}", path.display()))?;
    }
    Ok(())
}

/// The files of an authority, which is never made again: whoever dies here leaves both or none, or what
/// [`finish_authority`] finishes.
pub fn write_authority([cert, key]: &[PathBuf; 2], pair: &Pair) -> Result<()> {
    prepare(key, &pair.key, SECRET, Durable::Yes)?;
    prepare(cert, &pair.cert, PUBLIC, Durable::Yes)?;
    put_in_place(key)?;
    put_in_place(cert)
}

/// The key goes first: a prepared certificate without a prepared key is the second half of a pair whose
/// first is in place.
pub fn finish_authority([cert, key]: &[PathBuf; 2]) -> Result<()> {
    if temporary(cert).exists() && !temporary(key).exists() { put_in_place(cert) } else { Ok(()) }
}

/// `<base>.crt` and `<base>.key`.
pub fn of_base(base: &Path) -> [PathBuf; 2] {
    [file(base, "crt"), file(base, "key")]
}

/// The service accounts' key pair, as kubeadm names it.
pub fn write_signing_key(base: &Path, private: &str, public: &str) -> Result<()> {
    base::atomic::replace(&file(base, "key"), private.as_bytes(), SECRET)?;
    Ok(base::atomic::replace(&file(base, "pub"), public.as_bytes(), PUBLIC)?)
}

pub fn write_secret(path: &Path, text: &str) -> Result<()> {
    Ok(base::atomic::replace(path, text.as_bytes(), SECRET)?)
}

fn temporary(path: &Path) -> PathBuf {
    PathBuf::from(format!("{}.tmp", path.display()))
}

fn put_in_place(path: &Path) -> Result<()> {
    base::atomic::rename(&temporary(path), path).with_context(|| format!("write {}", path.display()))
}

fn prepare(path: &Path, text: &str, mode: u32, durable: Durable) -> Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let temporary = temporary(path);
    let written = (|| {
        let _ = std::fs::remove_file(&temporary);
        let mut file =
            std::fs::OpenOptions::new().create_new(true).write(true).mode(mode).open(&temporary)?;
        file.write_all(text.as_bytes())?;
        if durable == Durable::Yes {
            file.sync_all()?;
        }
        Ok::<_, std::io::Error>(())
    })();
    written.with_context(|| format!("write {}", path.display()))
}
