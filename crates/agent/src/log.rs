//! The agent's own log, which lies where the host reads it, and the size of all logs.

use std::path::Path;
use std::time::Duration;

use model::node_spec::LOG_DIR;

const LARGEST: u64 = 10 << 20;
const KEPT: u32 = 3;
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// Standard error is the log file that the launcher opened.
pub fn init() {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_target(false)
        .with_max_level(tracing::Level::INFO)
        .init();
}

/// The services write straight into their files (opened for appending), so that no log line costs
/// the agent anything. A file that has grown too large is copied and cut, beside the agent's one thread: a
/// slow disk holds nothing else up.
pub async fn rotate() {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let _ = tokio::task::spawn_blocking(|| {
            cut_large(Path::new(LOG_DIR), LARGEST);
        })
        .await;
    }
}

fn cut_large(dir: &Path, largest: u64) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        let large = entry.metadata().is_ok_and(|m| m.is_file() && m.len() > largest);
        if large
            && path.extension().is_some_and(|e| e == "log")
            && let Err(e) = cut(&path)
        {
            tracing::warn!("rotate {}: {e}", path.display());
        }
    }
}

fn cut(path: &Path) -> std::io::Result<()> {
    let numbered = |n: u32| path.with_extension(format!("log.{n}"));
    for n in (1..KEPT).rev() {
        match std::fs::rename(numbered(n), numbered(n + 1)) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
    }
    std::fs::copy(path, numbered(1))?;
    std::fs::OpenOptions::new().write(true).open(path)?.set_len(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_log_is_kept_and_empty() {
        let dir = std::env::temp_dir().join(format!("manykube-log-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let log = dir.join("x.log");
        for text in ["one", "two", "three", "four"] {
            std::fs::write(&log, text).unwrap();
            cut(&log).unwrap();
        }
        assert_eq!(std::fs::read_to_string(&log).unwrap(), "");
        let kept: Vec<String> =
            (1..=3).map(|n| std::fs::read_to_string(dir.join(format!("x.log.{n}"))).unwrap()).collect();
        assert_eq!(kept, ["four", "three", "two"]);
        assert!(!dir.join("x.log.4").exists());
        std::fs::write(&log, "12345").unwrap();
        std::fs::write(dir.join("meminfo"), "123456").unwrap();
        cut_large(&dir, 5);
        assert_eq!(std::fs::read_to_string(&log).unwrap(), "12345", "it is not too large");
        cut_large(&dir, 4);
        assert_eq!(std::fs::read_to_string(&log).unwrap(), "");
        assert_eq!(std::fs::read_to_string(dir.join("meminfo")).unwrap(), "123456", "no log");
        std::fs::remove_dir_all(dir).unwrap();
    }
}
