//! The log: `logs/lastStart.txt` for `start`, else a file in the directory for temporary files, or what
//! was asked for.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use model::Home;
use sha2::{Digest as _, Sha256};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::writer::{BoxMakeWriter, MakeWriterExt as _};

use crate::args::Globals;

/// A log file that is this large is followed by the next one.
const FULL: u64 = 1024 * 1024;

/// Sets logging up, where minikube has its files.
pub fn init(globals: &Globals, command: &str, args: &[String], home: &Home) {
    let stderr = globals.alsologtostderr || globals.logtostderr;
    let path = match (&globals.log_file, &globals.log_dir) {
        (Some(file), _) => Some(PathBuf::from(file)),
        (None, Some(dir)) => Some(numbered(dir.into(), command, args)),
        (None, None) if command == "start" => Some(home.logs().join("lastStart.txt")),
        (None, None) => Some(numbered(std::env::temp_dir(), command, args)),
    };
    let append = command != "start" || globals.log_file.is_some() || globals.log_dir.is_some();
    // A log that cannot be written is no reason for a command to fail.
    let file = path.and_then(|p| {
        let mut options = File::options();
        options.create(true).append(append).write(true).truncate(!append);
        // Of us alone, and never somebody else's by way of a link: the directory may be everybody's.
        options.mode(0o600).custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed()).open(p).ok()
    });
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

/// `minikube_<command>_<hash>_<n>.log`: the same invocation reuses its file until that is full.
fn numbered(dir: PathBuf, command: &str, args: &[String]) -> PathBuf {
    let words: Vec<&str> = args.iter().map(String::as_str).filter(|a| !a.starts_with('-')).collect();
    let digest = Sha256::digest(format!("{}\0{}", whoami(), words.join("\0")).as_bytes());
    let hash: String = digest.iter().take(20).map(|b| format!("{b:02x}")).collect();
    let path = |n: u32| dir.join(format!("minikube_{command}_{hash}_{n}.log"));
    let fits = |n: &u32| std::fs::metadata(path(*n)).map_or(true, |m| m.len() < FULL);
    path((0..).find(fits).unwrap_or(0))
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

    #[test]
    fn a_full_log_is_followed_by_another() {
        let dir = tempfile::tempdir().unwrap();
        let at = |args: &[&str]| {
            let args: Vec<String> = args.iter().map(|a| (*a).to_owned()).collect();
            numbered(dir.path().into(), "status", &args)
        };
        let first = at(&["-p", "demo"]);
        assert_eq!(first, at(&["-p", "demo"]));
        assert_ne!(first, at(&["-p", "other"]));
        File::create(&first).unwrap().set_len(FULL).unwrap();
        assert!(at(&["-p", "demo"]).to_string_lossy().ends_with("_1.log"));
    }
}
