//! The log: `logs/lastStart.txt` for `start`, else a file in the directory for temporary files, or what
//! was asked for.

use std::fs::{File, Metadata};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use model::Home;
use rustix::fs::OFlags;
use sha2::{Digest as _, Sha256};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::writer::{BoxMakeWriter, MakeWriterExt as _};

use crate::args::Globals;

/// A log file that is this large is followed by the next one.
const FULL: u64 = 1024 * 1024;
/// Another user may have taken some.
const NAMES: u32 = 1000;

/// Sets logging up, where minikube has its files.
pub fn init(globals: &Globals, command: &str, args: &[String], home: &Home) {
    let stderr = globals.alsologtostderr || globals.logtostderr;
    // A log that cannot be written is no reason for a command to fail.
    let file = match (&globals.log_file, &globals.log_dir) {
        (Some(file), _) => open(Path::new(file), true),
        (None, Some(dir)) => numbered(dir.into(), command, args),
        (None, None) if command == "start" => open(&home.logs().join("lastStart.txt"), false),
        (None, None) => numbered(std::env::temp_dir(), command, args),
    };
    let writer = match (file, stderr) {
        (None, false) => return,
        (None, true) => BoxMakeWriter::new(std::io::stderr),
        (Some(file), false) => BoxMakeWriter::new(std::sync::Mutex::new(file)),
        (Some(file), true) => BoxMakeWriter::new(std::sync::Mutex::new(file).and(std::io::stderr)),
    };
    let level = match globals.verbosity.as_deref().and_then(|v| v.parse::<u32>().ok()) {
        Some(0..=2) | None => "info",
        Some(3..=6) => "debug",
        Some(_) => "trace",
    };
    let filter = EnvFilter::try_from_env("MANYKUBE_LOG").unwrap_or_else(|_| {
        EnvFilter::new(format!(
            "info,manykube={level},engine={level},drivers={level},bootstrap={level},image={level}"
        ))
    });
    let _ = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).with_writer(writer).try_init();
}

/// For us alone, and never another file by way of a link.
fn open(path: &Path, append: bool) -> Option<File> {
    let mut options = File::options();
    options.create(true).append(append).write(true).truncate(!append).mode(0o600);
    // Nor does it wait for the reader of a pipe.
    options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed()).open(path).ok()
}

/// `minikube_<command>_<hash>_<n>.log`: the same invocation reuses its file until that is full. The directory may be
/// everybody's, and the name can be guessed: a file that is there already must be one that we made.
fn numbered(dir: PathBuf, command: &str, args: &[String]) -> Option<File> {
    let words: Vec<&str> = args.iter().map(String::as_str).filter(|a| !a.starts_with('-')).collect();
    let digest = Sha256::digest(format!("{}\0{}", whoami(), words.join("\0")).as_bytes());
    let hash: String = digest.iter().take(20).map(|b| format!("{b:02x}")).collect();
    let path = |n: u32| dir.join(format!("minikube_{command}_{hash}_{n}.log"));
    let fits = |file: &File| file.metadata().is_ok_and(|m| is_ours(&m) && m.len() < FULL);
    (0..NAMES).filter_map(|n| open(&path(n), true)).find(fits)
}

fn is_ours(file: &Metadata) -> bool {
    let owner = rustix::process::geteuid().as_raw();
    file.is_file() && file.uid() == owner && file.nlink() == 1 && file.mode() & 0o077 == 0
}

pub fn whoami() -> String {
    ["SUDO_USER", "USER", "LOGNAME"]
        .iter()
        .find_map(|k| std::env::var(k).ok())
        .unwrap_or_else(|| if rustix::process::geteuid().is_root() { "root".into() } else { String::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The name that is chosen, by what is written there.
    fn chosen(dir: &Path, args: &[&str]) -> PathBuf {
        use std::io::Write as _;
        let args: Vec<String> = args.iter().map(|a| (*a).to_owned()).collect();
        numbered(dir.into(), "status", &args).unwrap().write_all(b"here").unwrap();
        let mut all = std::fs::read_dir(dir).unwrap().flatten().map(|entry| entry.path());
        let found = all.find(|path| path.is_file() && std::fs::read(path).unwrap() == b"here").unwrap();
        File::options().write(true).open(&found).unwrap().set_len(0).unwrap();
        found
    }

    #[test]
    fn a_full_log_is_followed_by_another() {
        let dir = tempfile::tempdir().unwrap();
        let at = |args: &[&str]| chosen(dir.path(), args);
        let first = at(&["-p", "demo"]);
        assert_eq!(first, at(&["-p", "demo"]));
        assert_ne!(first, at(&["-p", "other"]));
        File::options().write(true).open(&first).unwrap().set_len(FULL).unwrap();
        assert!(at(&["-p", "demo"]).to_string_lossy().ends_with("_1.log"));
    }

    #[test]
    fn a_log_that_another_user_laid_out_is_not_written_to() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let name = |n: u32| {
            let first = chosen(dir.path(), &[]).to_string_lossy().into_owned();
            let stem = first.rsplit_once('_').unwrap().0.to_owned();
            PathBuf::from(format!("{stem}_{n}.log"))
        };
        let all: Vec<PathBuf> = (0..4).map(name).collect();
        std::fs::remove_file(&all[0]).unwrap();
        // All may read it; a second name of a file; a pipe without a reader.
        std::fs::write(&all[0], "").unwrap();
        std::fs::set_permissions(&all[0], PermissionsExt::from_mode(0o644)).unwrap();
        let mut options = File::options();
        options.create(true).append(true).mode(0o600).open(dir.path().join("x")).unwrap();
        std::fs::hard_link(dir.path().join("x"), &all[1]).unwrap();
        nix::unistd::mkfifo(&all[2], nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
        assert_eq!(chosen(dir.path(), &[]), all[3]);
    }
}
